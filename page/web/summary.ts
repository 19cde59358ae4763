/** The answer in a sentence, tiles, causes, and beside other configurations. */

import { arrayOf, COMPONENTS, componentsOf, type Energies } from "./energy";
import { titleOf } from "./filesystems";
import { isMicro } from "./state";
import type { Answer, BoardTables, Causes, Config, FileSystem, Lifetime } from "./types";
import {
  amplification,
  bytes,
  count,
  difference,
  energy,
  nameOf,
  ratio,
  time,
  total,
  years,
} from "./words";

export interface Shown {
  config: Config;
  answer: Answer;
  board: BoardTables;
  endurance: number | null;
  energies: Energies;
}

export const CAUSES: [keyof Causes, string, string][] = [
  ["data", "the program's data", "live"],
  ["metadata", "metadata", "accent"],
  ["padding", "padding", "stale"],
  ["collection", "garbage collection", "collect"],
  ["wear_levelling", "wear levelling", "sync"],
];

function made(name: string, className: string, text = ""): HTMLElement {
  const element = document.createElement(name);
  if (className) element.className = className;
  element.textContent = text;
  return element;
}

/** The answer as a headline. */
export function sentence(place: HTMLElement, title: string, shown: Shown): void {
  const { config, answer } = shown;
  const { counts } = answer;
  const strong = (text: string) => made("b", "", text);
  const known = answer.unpriced === null;
  const fs = titleOf(config.fs);
  const s = isMicro(config.program) && config.requests > 1 ? "" : "s"; // requests take, git takes
  const parts: (string | HTMLElement)[] = [`${title} on ${fs} `];
  if (known) parts.push(`take${s} `, strong(time(counts.time_ns)), ", ");
  const writes = counts.flash_programs > 0;
  if (writes) parts.push(`write${s} `, strong(`${count(counts.flash_programs)} flash pages`), " ");
  if (writes && counts.flash_erases > 0) {
    const blocks = counts.flash_erases === 1 ? "block" : "blocks";
    parts.push(`and erase${s} `, strong(`${count(counts.flash_erases)} ${blocks}`), ".");
  } else if (writes) parts.push(`and erase${s} nothing.`);
  else parts.push(`and read${s} `, strong(`${count(counts.flash_reads)} flash pages`), ".");
  if (counts.failed > 0) {
    const calls = counts.failed === 1 ? "call" : "calls";
    const failed = strong(`${count(counts.failed)} ${calls} failed`);
    parts.push(" ", failed, ": this is less than its work.");
  }
  place.replaceChildren(...parts);
}

interface Tile {
  key: string;
  label: string;
  value: string;
  note: string;
  /** What the same number of a kept configuration is compared by. */
  number: (shown: Shown) => number | null;
}

function tilesOf(shown: Shown): Tile[] {
  const { answer, endurance } = shown;
  const { counts, lifetime: lasts } = answer;
  const amplified = amplification(answer);
  const flushed = answer.flush;
  const after = (value: number | undefined) => (value ? `+ ${count(value)} left in cache` : "");
  const years1 = lasts.alone?.levelled ?? null;
  return [
    {
      key: "time",
      label: "Time in calls",
      value: answer.unpriced === null ? time(counts.time_ns) : "unknown",
      note:
        answer.unpriced === null
          ? `chip busy ${time(counts.flash_time_ns)}`
          : `${answer.unpriced} has no price on this board`,
      number: (of) => of.answer.counts.time_ns,
    },
    {
      key: "reads",
      label: "Page reads",
      value: count(counts.flash_reads),
      note: after(flushed?.flash_reads),
      number: (of) => of.answer.counts.flash_reads,
    },
    {
      key: "programs",
      label: "Page writes",
      value: count(counts.flash_programs),
      note: after(flushed?.flash_programs),
      number: (of) => of.answer.counts.flash_programs,
    },
    {
      key: "erases",
      label: "Erases",
      value: count(counts.flash_erases),
      note: after(flushed?.flash_erases),
      number: (of) => of.answer.counts.flash_erases,
    },
    {
      key: "amplification",
      label: "Write amplification",
      value: amplified === null ? "–" : `${amplified.toFixed(2)} ×`,
      note:
        amplified === null
          ? "the program writes nothing"
          : `${bytes(counts.bytes_written)} written`,
      number: (of) => amplification(of.answer),
    },
    {
      key: "lifetime",
      label: "The chip lasts",
      value: years1 === null ? "–" : `${lasts.steady ? "" : "≤ "}${years(years1)}`,
      note: counts.failed ? "calls failed" : lastsNote(lasts, endurance),
      number: (of) => of.answer.lifetime.alone?.levelled ?? null,
    },
    ...energyTiles(shown.energies),
  ];
}

/** The energy that is known: by mean power, else by component, else of the chip alone. */
function energyTiles(energies: Energies): Tile[] {
  const tile = (label: string, note: string, of: (energies: Energies) => bigint | null): Tile[] => {
    const known = of(energies);
    if (known === null) return [];
    const number = (other: Shown) => {
      const value = of(other.energies);
      return value === null ? null : Number(value);
    };
    return [{ key: "energy", label, value: energy(known), note, number }];
  };
  const { energy_cpu_nj: cpu, energy_mem_nj: mem } = energies;
  const rails = cpu !== null && mem !== null;
  const parts = rails ? `processor ${energy(cpu)}, RAM and flash ${energy(mem)}` : "whole supply";
  const measured = tile("Energy above idle", parts, (of) => of.energy_nj);
  if (measured.length) return measured;
  const all = tile("Energy above idle", "by component", componentsOf);
  if (all.length) return all;
  return tile("The chip's energy", "its array alone; the rest is not known", arrayOf);
}

/** Energy by component, where each of them is known. */
export function components(place: HTMLElement, legend: HTMLElement, energies: Energies): void {
  const all = componentsOf(energies);
  place.parentElement?.toggleAttribute("hidden", all === null || all === 0n);
  const parts = COMPONENTS.map(([key, name, colour]): Part => {
    const value = energies[key] ?? 0n;
    return { name, colour, value: Number(value), words: energy(value) };
  });
  shares(place, legend, "Energy by component", parts);
}

function lastsNote({ alone, steady }: Lifetime, endurance: number | null): string {
  if (alone === null) return "nothing wears";
  if (steady && alone.as_seen !== null) return `worst block as now: ${years(alone.as_seen)}`;
  return `run without a break, ${count(endurance ?? 0)} erases`;
}

/** Numbers in tiles, each beside that of the kept configuration. */
export function tiles(place: HTMLElement, shown: Shown, kept: Shown | null): void {
  const all = tilesOf(shown).map((tile, at) => {
    const element = made("div", "tile");
    element.dataset.key = tile.key;
    const number = tile.number(shown);
    element.dataset.value = number === null ? "" : String(number);
    element.append(made("span", "", tile.label), made("b", "", tile.value));
    const before = kept ? tile.number(kept) : null;
    if (kept && before !== null && number !== null) {
      const apart = number === 0 || before === 0;
      const words = number === before ? "the same" : `before: ${tilesOf(kept)[at]?.value ?? ""}`;
      element.append(made("small", "delta", apart ? words : ratio(number, before)));
    } else {
      element.append(made("small", "", tile.note));
    }
    element.title = tile.note;
    return element;
  });
  place.replaceChildren(...all);
}

/** What was written to the flash, by cause. */
export function causes(place: HTMLElement, legend: HTMLElement, answer: Answer): void {
  place.parentElement?.toggleAttribute("hidden", total(answer.counts.causes) === 0);
  const parts = CAUSES.map(([cause, name, colour]): Part => {
    const value = answer.counts.causes[cause];
    return { name, colour, value, words: bytes(value) };
  });
  shares(place, legend, "Bytes to the flash", parts);
}

interface Part {
  name: string;
  colour: string;
  value: number;
  words: string;
}

/** Parts of a whole side by side, and a legend with their shares. */
function shares(place: HTMLElement, legend: HTMLElement, title: string, of: Part[]): void {
  const all = of.reduce((sum, part) => sum + part.value, 0);
  const parts: HTMLElement[] = [];
  const keys = [made("span", "title", title)];
  const said: string[] = [];
  for (const { name, colour, value, words: given } of of) {
    if (value === 0) continue;
    const percent = ((value / all) * 100).toFixed(value / all < 0.1 ? 1 : 0);
    const words = `${name} ${given}, ${percent} %`;
    said.push(words);
    const part = made("i", "");
    part.style.width = `${(value / all) * 100}%`;
    part.style.background = `var(--${colour})`;
    part.title = words;
    parts.push(part);
    const key = made("span", "");
    const swatch = made("i", "");
    swatch.style.background = `var(--${colour})`;
    key.append(swatch, words);
    keys.push(key);
  }
  place.setAttribute("aria-label", `${title}: ${said.join("; ")}`);
  place.replaceChildren(...parts);
  legend.replaceChildren(...keys);
}

/** Time and page writes of each file system, the longest bar the largest number. */
export function trio(
  place: HTMLElement,
  chosen: FileSystem,
  results: Map<FileSystem, Answer | string>,
  choose: (fs: FileSystem) => void,
): void {
  const answers = [...results.values()].filter((one) => typeof one !== "string") as Answer[];
  const writes = answers.some((answer) => answer.counts.flash_programs > 0);
  const number = (answer: Answer) =>
    writes ? answer.counts.flash_programs : answer.counts.flash_reads;
  const longest = Math.max(1, ...answers.map((answer) => answer.counts.time_ns));
  const most = Math.max(1, ...answers.map(number));
  const rows = [...results].map(([fs, result]) => {
    const row = made("button", "fs") as HTMLButtonElement;
    row.type = "button";
    row.dataset.fs = fs;
    row.setAttribute("aria-pressed", String(fs === chosen));
    row.addEventListener("click", () => choose(fs));
    const bars = made("div", "bars");
    if (typeof result === "string") bars.append(made("small", "", result));
    else {
      bars.append(
        bar(result.counts.time_ns / longest, time(result.counts.time_ns), "accent"),
        bar(
          number(result) / most,
          `${count(number(result))} ${writes ? "page writes" : "page reads"}`,
          writes ? "program" : "read",
        ),
      );
    }
    row.append(made("b", "", titleOf(fs)), bars);
    return row;
  });
  place.replaceChildren(...rows);
}

function bar(share: number, words: string, colour: string): HTMLElement {
  const row = made("div", "bar");
  const track = made("div", "");
  const fill = made("i", "");
  fill.style.width = `${Math.max(share > 0 ? 0.6 : 0, share * 100)}%`;
  fill.style.background = `var(--${colour})`;
  track.append(fill);
  row.append(track, made("span", "", words));
  return row;
}

/** The kept configuration, and how what is shown differs from it. */
export function pinned(place: HTMLElement, shown: Shown, kept: Shown | null): void {
  if (!kept) {
    const reads = shown.config.program === "micro-read";
    const example = reads ? "turn read-ahead off" : "choose another file system";
    place.replaceChildren(
      made(
        "p",
        "who",
        `Keep this configuration, then ${example}: the difference stands here in words.`,
      ),
    );
    return;
  }
  const sentences = difference(shown, kept);
  const list = made("ul", "");
  list.append(...sentences.map((text) => made("li", "", text)));
  const same = nameOf(shown.config, kept.config) === nameOf(kept.config, shown.config);
  const who = same
    ? "Kept: the same names, other values."
    : `Kept: ${nameOf(kept.config, shown.config)}.`;
  const rest = sentences.length ? list : made("p", "", "No number differs.");
  place.replaceChildren(made("p", "who", who), rest);
}
