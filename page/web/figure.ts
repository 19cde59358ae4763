/**
 * A small figure for a page of the documents (`#embed=NAME`): one measure over a few
 * configurations, which are simulated while the reader looks. figures.json says which.
 */

import { Choice } from "./controls";
import figures from "./figures.json";
import { titleOf } from "./filesystems";
import { Lane } from "./runner";
import { encode, USUAL } from "./state";
import type { Config, Counts, FileSystem } from "./types";
import { count, time } from "./words";
import { requestOf, type World } from "./world";

interface Figure {
  title: string;
  of: Partial<Config>;
  over: { key: string; title: string; values: (string | number)[]; labels?: string[] };
  series: { label: string; set: Partial<Config> }[];
  choices: Record<string, string[]>;
  measures: Record<string, string>;
  /** Whether the measure is of one request. */
  each: boolean;
}

interface Point {
  address: string;
  /** The simulator's number; null until it is there. */
  value: number | null;
  /** Why there is none. */
  refused: string;
}

const FIGURES = figures as unknown as Record<string, Figure>;
const NAMES: Record<string, string> = {
  fs: "File system",
  order: "Order of the reads",
  think: "The program",
  measure: "Measure",
  false: "its calls alone",
  true: "with its own work",
};
/** Tell series apart without colour: plain, striped, dotted. */
const PATTERNS = ["", "M-2,2 l4,-4 M0,8 l8,-8 M6,10 l4,-4", "M2,2 h2 v2 h-2 z M6,6 h2 v2 h-2 z"];
const COLOURS = ["live", "program", "read"];
const HEIGHT = 250;
const LEFT = 66;
const BELOW = 44;
const SVG = "http://www.w3.org/2000/svg";

/** The figure that an address asks for; none is another page. */
export function embedOf(text: string): string {
  const name = new URLSearchParams(text).get("embed") ?? "";
  return Object.hasOwn(FIGURES, name) ? name : "";
}

function drawn(name: string, attributes: Record<string, string | number>, text = ""): SVGElement {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  if (text) made.textContent = text;
  return made;
}

/** Round numbers from 0 to at least `most`, four or five of them. */
function ticks(most: number): number[] {
  const rough = most / 4 || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 2.5, 5, 10].find((one) => one * power >= rough) ?? 10) * power;
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, index) => index * step);
}

/** Simulates a figure's configurations one after another and draws them as bars. */
export class LiveFigure {
  private readonly figure: Figure;
  private readonly lane = new Lane();
  private readonly chosen: Record<string, string> = {};
  private readonly choices: { key: string; choice: Choice; values: string[] }[] = [];
  private readonly chart = document.createElement("div");
  private readonly caption = document.createElement("p");
  private points: Point[][] = [];
  private turn = 0;
  private busy = false;

  constructor(
    root: HTMLElement,
    private readonly world: World,
    name: string,
  ) {
    this.figure = FIGURES[name] as Figure;
    const heading = document.createElement("h2");
    heading.textContent = this.figure.title;
    const controls = document.createElement("div");
    controls.className = "figure-choices";
    const measures = Object.keys(this.figure.measures);
    for (const [key, values] of Object.entries({ ...this.figure.choices, measure: measures })) {
      const choice = new Choice(NAMES[key] ?? key, (value) => this.choose(key, value));
      this.choices.push({ key, choice, values });
      this.chosen[key] = values[0] ?? "";
      controls.append(choice.root);
    }
    this.chart.className = "figure-chart";
    this.caption.className = "caption";
    this.caption.setAttribute("aria-live", "polite");
    root.replaceChildren(heading, controls, this.chart, this.caption);
    let width = innerWidth;
    addEventListener("resize", () => {
      if (innerWidth === width) return;
      width = innerWidth;
      this.draw();
    });
    this.simulate();
  }

  /** What the tests read. */
  get state() {
    return { settled: !this.busy, points: this.points, chosen: this.chosen };
  }

  private choose(key: string, value: string): void {
    this.chosen[key] = value;
    this.simulate();
  }

  private config(at: string | number, series: Figure["series"][number]): Config {
    const { fs, order, think } = this.chosen;
    return {
      ...USUAL,
      ...this.figure.of,
      ...(fs ? { fs: fs as FileSystem } : {}),
      ...(order ? { order: order as Config["order"] } : {}),
      ...(think ? { think: think === "true" } : {}),
      [this.figure.over.key]: at,
      ...series.set,
    };
  }

  private simulate(): void {
    this.turn += 1;
    this.busy = true;
    this.lane.cancel();
    const turn = this.turn;
    const wanted: [Config, Point][] = [];
    const before = this.points;
    this.points = this.figure.series.map((series, row) =>
      this.figure.over.values.map((at, column) => {
        const config = this.config(at, series);
        const address = encode(config);
        const known = before[row]?.[column];
        const point = { address, value: known?.value ?? null, refused: "" };
        wanted.push([config, point]);
        return point;
      }),
    );
    for (const { key, choice, values } of this.choices) {
      const named = (value: string) =>
        this.figure.measures[value] ?? NAMES[value] ?? titleOf(value);
      choice.show(
        values.map((value) => ({ value, label: named(value) })),
        this.chosen[key] ?? "",
      );
    }
    const next = () => {
      const [config, point] = wanted.shift() ?? [];
      this.busy = config !== undefined;
      this.draw();
      if (!config || !point) {
        parent.postMessage({ flashbed: "drawn", height: document.body.scrollHeight }, "*");
        return;
      }
      const request = () => {
        const made = requestOf(this.world, config, null);
        made.header.rows_max = 0;
        return made;
      };
      this.lane.run(request, (outcome) => {
        if (turn !== this.turn) return;
        const measure = this.chosen.measure as keyof Counts;
        if (outcome.kind !== "answer") point.refused = outcome.message;
        else if (measure === "time_ns" && outcome.answer.unpriced) {
          point.refused = outcome.answer.unpriced;
        } else point.value = Number(outcome.answer.counts[measure]);
        if (point.refused) point.value = null;
        next();
      });
    };
    next();
  }

  /** A point's number as it is drawn: of one request, if the figure says so. */
  private shown(point: Point, column: number): number {
    const of = this.figure.each ? Number(this.figure.over.values[column]) : 1;
    return (point.value ?? 0) / of;
  }

  private named(value: number): string {
    if (this.chosen.measure === "time_ns") return time(value < 1e3 ? Math.round(value) : value);
    return Number.isInteger(value) ? count(value) : value.toFixed(value < 10 ? 2 : 1);
  }

  private draw(): void {
    const width = Math.max(280, this.chart.clientWidth || 600);
    const { over, series } = this.figure;
    const values = this.points.flatMap((row) => row.map((point, at) => this.shown(point, at)));
    const marks = ticks(Math.max(...values, 0));
    const most = marks[marks.length - 1] || 1;
    const y = (value: number) => 10 + (HEIGHT - 10) * (1 - value / most);
    const svg = drawn("svg", { width, height: HEIGHT + BELOW, role: "img" });
    const measure = this.figure.measures[this.chosen.measure ?? ""] ?? "";
    svg.setAttribute(
      "aria-label",
      `${measure}, by ${over.title}; the same numbers as a list below`,
    );
    const patterns = drawn("defs", {});
    series.forEach((_, row) => {
      const colour = `var(--${COLOURS[row % COLOURS.length]})`;
      const made = drawn("pattern", {
        id: `p${row}`,
        width: 8,
        height: 8,
        patternUnits: "userSpaceOnUse",
      });
      made.append(drawn("rect", { width: 8, height: 8, fill: colour }));
      const path = PATTERNS[row % PATTERNS.length];
      if (path) made.append(drawn("path", { d: path, stroke: "var(--card)", "stroke-width": 1.6 }));
      patterns.append(made);
    });
    svg.append(patterns);
    for (const mark of marks) {
      svg.append(
        drawn("line", { x1: LEFT, x2: width, y1: y(mark), y2: y(mark), stroke: "var(--line)" }),
      );
      const at = { x: LEFT - 8, y: y(mark) + 4, "text-anchor": "end" };
      svg.append(drawn("text", at, this.named(mark)));
    }
    const slot = (width - LEFT) / over.values.length;
    const bar = Math.min(46, (slot * 0.82) / series.length);
    over.values.forEach((value, column) => {
      const left = LEFT + slot * column + (slot - bar * series.length) / 2;
      series.forEach((one, row) => {
        svg.append(this.bar(left + bar * row, bar, y, column, row, one.label));
      });
      const label = over.labels?.[column] ?? count(Number(value));
      const at = { x: LEFT + slot * (column + 0.5), y: HEIGHT + 17, "text-anchor": "middle" };
      svg.append(drawn("text", at, label));
    });
    const middle = { x: LEFT + (width - LEFT) / 2, y: HEIGHT + 37, "text-anchor": "middle" };
    svg.append(drawn("text", middle, over.title));
    this.chart.replaceChildren(this.legend(), svg, this.list());
    this.caption.textContent = this.said();
  }

  private bar(
    x: number,
    width: number,
    y: (value: number) => number,
    column: number,
    row: number,
    label: string,
  ): SVGElement {
    const point = this.points[row]?.[column] as Point;
    const value = this.shown(point, column);
    const link = drawn("a", { href: `#${point.address}`, target: "_blank" });
    const at = this.figure.over.labels?.[column] ?? this.figure.over.values[column];
    const words = point.refused || this.named(value);
    link.append(drawn("title", {}, `${label}, ${at}: ${words}. Opens it in the playground.`));
    const top = y(value);
    const box = { x: x + 0.5, y: top, width: Math.max(1, width - 1), height: HEIGHT - top };
    link.append(drawn("rect", { ...box, fill: `url(#p${row})`, rx: 1 }));
    if (point.refused) {
      link.append(drawn("text", { x: x + width / 2, y: HEIGHT - 5, "text-anchor": "middle" }, "–"));
    }
    const show = () => {
      this.caption.textContent = `${label}, ${at}: ${words}`;
    };
    link.addEventListener("pointerenter", show);
    link.addEventListener("focus", show);
    link.addEventListener("pointerleave", () => {
      this.caption.textContent = this.said();
    });
    return link;
  }

  private legend(): HTMLElement {
    const legend = document.createElement("div");
    legend.className = "legend";
    this.figure.series.forEach(({ label }, row) => {
      const key = document.createElement("span");
      const swatch = drawn("svg", { width: 14, height: 12, "aria-hidden": "true" });
      swatch.append(drawn("rect", { width: 12, height: 12, rx: 3, fill: `url(#p${row})` }));
      key.append(swatch, label);
      legend.append(key);
    });
    return legend;
  }

  /** The numbers for a reader who does not see the bars. */
  private list(): HTMLElement {
    const list = document.createElement("ul");
    list.className = "unseen";
    this.figure.series.forEach(({ label }, row) => {
      this.points[row]?.forEach((point, column) => {
        const at = this.figure.over.labels?.[column] ?? this.figure.over.values[column];
        const item = document.createElement("li");
        const words = point.refused || this.named(this.shown(point, column));
        item.textContent = `${label}, ${at}: ${words}`;
        list.append(item);
      });
    });
    return list;
  }

  private said(): string {
    const missing = this.points.flat().filter((point) => point.value === null && !point.refused);
    if (missing.length) return "Simulating in this page…";
    return "Simulated in this page just now. Point at a bar for its number; a click opens its stack.";
  }
}
