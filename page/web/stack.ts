/** The layers that a call falls through, and how long it is in each. */

import { titleOf } from "./filesystems";
import { above } from "./play";
import { isCall } from "./timeline";
import type { Answer, BoardTables, Config } from "./types";
import { bytes, count, time } from "./words";

interface Layer {
  name: string;
  what: string;
  ns: number;
  colour: string;
}

const OWN: Layer = {
  name: "The program itself",
  what: "its own work between two calls",
  ns: 0,
  colour: "var(--other)",
};

interface Flashed {
  reads: number;
  programs: number;
  erases: number;
  background: number;
}

function flashed(answer: Answer, from: number, to: number): Flashed {
  const { flash_start, flash_kind, flash_task } = answer.columns;
  const result = { reads: 0, programs: 0, erases: 0, background: 0 };
  for (let op = above(flash_start, from - 1); op < flash_start.length; op += 1) {
    if ((flash_start[op] as number) >= to) break;
    const kind = flash_kind[op];
    if (kind === 0) result.reads += 1;
    else if (kind === 1) result.programs += 1;
    else result.erases += 1;
    if (flash_task[op] !== 0) result.background += 1;
  }
  return result;
}

function arrayTime(of: Flashed, board: BoardTables): number {
  const { read_array_ns, program_array_ns, erase_array_ns } = board.chip;
  return of.reads * read_array_ns + of.programs * program_array_ns + of.erases * erase_array_ns;
}

function did(of: Flashed): string {
  const words: string[] = [];
  const say = (value: number, one: string, many: string) => {
    if (value > 0) words.push(`${count(value)} ${value === 1 ? one : many}`);
  };
  say(of.reads, "page read", "page reads");
  say(of.programs, "page write", "page writes");
  say(of.erases, "erase", "erases");
  const by = of.background > 0 ? `, ${count(of.background)} of them by kernel threads` : "";
  return words.length ? words.join(", ") + by : "nothing";
}

/** Times of a call, each with everything below it, but UBI's own. */
interface Times {
  latency: number;
  fs: number;
  ubi: number;
  driver: number;
  flash: number;
}

/** Layers from the call to the cells; their times add up to the call's. */
function layers(config: Config, board: BoardTables, times: Times, of: Flashed): Layer[] {
  const { latency, fs, ubi, driver, flash } = times;
  const array = Math.min(flash, arrayTime(of, board));
  const name = titleOf(config.fs);
  const hardware = board.ecc.kind !== "software-subpage";
  const found: Layer[] = [
    {
      name: "System call and page cache",
      what: "enters the kernel, finds pages, copies",
      ns: latency - fs,
      colour: "var(--live)",
    },
    {
      name,
      what: "compresses, makes and finds nodes, waits for threads",
      ns: fs - ubi - driver,
      colour: "var(--accent)",
    },
    {
      name: "NAND driver",
      what: hardware ? "calls, data moves; ECC in hardware" : "calls, data moves, ECC in software",
      ns: driver - flash,
      colour: "var(--collect)",
    },
    {
      name: "Bus",
      what: "pages to and from the chip's register",
      ns: flash - array,
      colour: "var(--sync)",
    },
    { name: "Cells", what: did(of), ns: array, colour: "var(--program)" },
  ];
  if (config.fs === "ubifs") {
    const free = board.software.ubi_write_ns === 0;
    const what = free
      ? "maps logical blocks: no time that could be told from UBIFS's on this board"
      : "maps logical blocks, writes headers";
    found.splice(2, 0, { name: "UBI", what, ns: ubi, colour: "var(--read)" });
  }
  return found;
}

function row(layer: Layer, whole: number): HTMLElement {
  const share = whole > 0 ? layer.ns / whole : 0;
  const element = document.createElement("div");
  element.className = "layer";
  const text = document.createElement("div");
  text.className = "layer-text";
  const name = document.createElement("b");
  name.textContent = layer.name;
  const what = document.createElement("span");
  what.textContent = layer.what;
  text.append(name, what);
  const bar = document.createElement("div");
  bar.className = "layer-bar";
  const fill = document.createElement("i");
  fill.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  fill.style.background = layer.colour;
  bar.append(fill);
  const value = document.createElement("div");
  value.className = "layer-time";
  value.textContent = time(layer.ns);
  const percent = document.createElement("small");
  percent.textContent = `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;
  value.append(percent);
  element.append(text, bar, value);
  return element;
}

/** Shows a call, or the program as a whole where none is pointed at. */
export function showStack(
  place: HTMLElement,
  title: HTMLElement,
  config: Config,
  board: BoardTables,
  answer: Answer,
  request: number,
): void {
  const { columns } = answer;
  if (request < 0) {
    showAll(place, title, config, board, answer);
    return;
  }
  const at = (column: ArrayLike<number>) => column[request] as number;
  const start = at(columns.request_start);
  const latency = at(columns.request_latency);
  const of = flashed(answer, start, start + latency);
  const op = answer.op_names[at(columns.request_op)] ?? "";
  const file = answer.files[at(columns.request_file)];
  const length = at(columns.request_length);
  const offset = at(columns.request_offset);
  const words = [file, offset >= 0 ? `at ${count(offset)}` : "", length >= 0 ? bytes(length) : ""];
  const said = words.filter((word) => word).join(", ");
  title.textContent = `${op}(${said}): ${time(latency)}, call ${count(request + 1)} at ${time(start)}`;
  const times: Times = {
    latency,
    fs: at(columns.request_fs),
    ubi: at(columns.request_ubi),
    driver: at(columns.request_driver),
    flash: at(columns.request_flash),
  };
  const all = layers(config, board, times, of);
  if (op === "compute") all[0] = { ...OWN, ns: (all[0] as Layer).ns };
  place.replaceChildren(...all.map((layer) => row(layer, latency)));
}

/** The program as a whole. */
function showAll(
  place: HTMLElement,
  title: HTMLElement,
  config: Config,
  board: BoardTables,
  answer: Answer,
): void {
  const { columns, counts } = answer;
  const times: Times = { latency: counts.time_ns, fs: 0, ubi: 0, driver: 0, flash: 0 };
  let own = 0;
  let calls = 0;
  const pause = answer.op_names.indexOf("pause");
  const compute = answer.op_names.indexOf("compute");
  for (let at = 0; at < columns.request_op.length; at += 1) {
    const op = columns.request_op[at] as number;
    if (op === pause) continue;
    if (isCall(answer.op_names[op])) calls += 1;
    const fs = columns.request_fs[at] as number;
    times.fs += fs;
    times.ubi += columns.request_ubi[at] as number;
    times.driver += columns.request_driver[at] as number;
    if (op === compute) own += (columns.request_latency[at] as number) - fs;
  }
  // Rows that were left out have no layers; the flash's time is of all.
  times.flash = counts.flash_time_ns;
  times.driver = Math.max(times.driver, times.flash);
  times.fs = Math.max(times.fs, times.driver + times.ubi);
  const of: Flashed = {
    reads: counts.flash_reads,
    programs: counts.flash_programs,
    erases: counts.flash_erases,
    background: 0,
  };
  title.textContent = `All ${count(calls)} calls: ${time(counts.time_ns)}`;
  const all = layers(config, board, times, of);
  if (own > 0) {
    (all[0] as Layer).ns -= own;
    all.unshift({ ...OWN, ns: own });
  }
  place.replaceChildren(...all.map((layer) => row(layer, counts.time_ns)));
}
