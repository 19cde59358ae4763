// Which page of those that hold the words comes first: guides, then models and reference, evidence last.
const places = {"docs/guide/": 8, "docs/models/": 5, "docs/reference/python": -2, "docs/reference/": 4, "docs/how-far-off": 2, "evidence/": -3, "CHANGELOG": -6};
var Scorer = {
  score: ([page, , , , score]) => {
    const place = Object.keys(places).find(start => page.startsWith(start));
    return score + (place ? places[place] : 0);
  },
  objNameMatch: 11, objPartialMatch: 6,
  objPrio: {0: 15, 1: 5, 2: -5}, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
