/**
 * Several programs of a product on the flash that is chosen: what each wears, and how long the flash
 * lasts. What each does to it, and the years of all, are in their answers (page/src/lifetime.rs).
 */

import type { Dropped, Part } from "./program";
import { Lane } from "./runner";
import type { Answer, Config, Lifetime } from "./types";
import { count, years } from "./words";
import { requestOf, type World } from "./world";

/** Several programs on one flash: their erases add up. */
interface Mixed {
  shares: (Lifetime & { share: number | null })[];
  /** Years until the mean block reaches its endurance; null where a part is not known. */
  years: number | null;
  steady: boolean;
}

const HEADS = ["program", "runs a day", "page writes each", "erases a day", "share"];

export class Mix {
  private readonly lane = new Lane();
  /** What was found of the whole, as the tests read it. */
  found: Mixed | null = null;

  constructor(
    private readonly card: HTMLElement,
    private readonly world: World,
    private readonly choose: (part: Part) => void,
  ) {}

  get busy(): boolean {
    return this.lane.busy;
  }

  /** Simulates every part of what was dropped, one after the other. */
  show(config: Config, dropped: Dropped | null): void {
    this.lane.cancel();
    this.found = null;
    const parts = config.program === "own" ? (dropped?.mix ?? []) : [];
    this.card.hidden = parts.length === 0;
    const answers: Answer[] = [];
    const next = () => {
      const part = parts[answers.length];
      if (!part) {
        this.tell(config, parts, answers);
        return;
      }
      this.say(`simulating ${part.program.title}, ${answers.length + 1} of ${parts.length}`);
      const request = () => {
        const mine = { ...(dropped as Dropped), program: part.program };
        const made = requestOf(this.world, config, mine);
        made.header.rows_max = 0;
        made.header.lifetime.runs_per_day = part.runsPerDay;
        made.header.lifetime.others = answers.map((one) => one.lifetime.erases_per_day);
        return made;
      };
      this.lane.run(request, (outcome) => {
        if (outcome.kind !== "answer") {
          this.say(`${part.program.title}: ${outcome.message}`);
          return;
        }
        answers.push(outcome.answer);
        next();
      });
    };
    if (parts.length) next();
  }

  private say(text: string): void {
    this.answer.textContent = text;
  }

  private get answer(): HTMLElement {
    return this.card.querySelector("p") as HTMLElement;
  }

  private tell(config: Config, parts: Part[], answers: Answer[]): void {
    const found = mixed(answers);
    this.found = found;
    const rows = parts.map((part, at) => this.row(part, found, at, config));
    const head = document.createElement("tr");
    head.append(...HEADS.map((text) => cell("th", text)));
    this.card.querySelector("table")?.replaceChildren(head, ...rows);
    this.say(this.sentence(found, answers, parts));
  }

  private sentence(found: Mixed, answers: Answer[], parts: Part[]): string {
    const failed = answers.findIndex((answer) => answer.counts.failed > 0);
    if (failed >= 0) return `No lifetime: calls of ${parts[failed]?.program.title} failed.`;
    const silent = found.shares.findIndex((share) => share.runs_per_day === null);
    if (silent >= 0) {
      const name = parts[silent]?.program.title;
      return `No lifetime: how often does ${name} run? flashbed playground ${name}.rec@1/h says it.`;
    }
    if (found.years === null) return "No lifetime: nothing wears, or nobody knows the endurance.";
    if (found.steady) return `Together the chip lasts ${years(found.years)}.`;
    return `Together the chip lasts ≤ ${years(found.years)}, by one run of each; flashbed lifetime runs them until free space is used up.`;
  }

  private row(part: Part, found: Mixed, at: number, config: Config): HTMLElement {
    const share = found.shares[at];
    const row = document.createElement("tr");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = part.program.title;
    button.addEventListener("click", () => this.choose(part));
    const name = cell("td", "");
    name.append(button);
    const said = (value: number | null | undefined) => (value == null ? "–" : rounded(value));
    const percent = share?.share == null ? "–" : `${(share.share * 100).toFixed(1)} %`;
    row.append(
      name,
      cell("td", said(share?.runs_per_day)),
      cell("td", said(share?.programs_per_run)),
      cell("td", said(share?.erases_per_day)),
      cell("td", percent),
    );
    row.dataset.fs = config.fs;
    return row;
  }
}

/** The shares of each in the erases of all; the last answer knows of all. */
function mixed(answers: Answer[]): Mixed {
  const parts = answers.map((answer) => answer.lifetime);
  const known = parts.every((part) => part.erases_per_day !== null);
  const all = parts.reduce((sum, part) => sum + (part.erases_per_day ?? 0), 0);
  const share = (part: Lifetime) => (known && all ? (part.erases_per_day ?? 0) / all : null);
  return {
    shares: parts.map((part) => ({ ...part, share: share(part) })),
    years: parts[parts.length - 1]?.together_years ?? null,
    steady: parts.every((part) => part.steady || part.erases_per_day === 0),
  };
}

function cell(kind: "td" | "th", text: string): HTMLElement {
  const made = document.createElement(kind);
  made.textContent = text;
  return made;
}

function rounded(value: number): string {
  return value >= 100 ? count(Math.round(value)) : value.toPrecision(3);
}
