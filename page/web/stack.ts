/** The layers that a call falls through, and how long it is in each. */

import { above } from "./play";
import { isCall } from "./timeline";
import type { Answer, BoardTables, Config } from "./types";
import { bytes, count, FS_NAMES, time } from "./words";

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
  say(of.reads, "read", "reads");
  say(of.programs, "program", "programs");
  say(of.erases, "erase", "erases");
  const by = of.background > 0 ? `, ${count(of.background)} of them by kernel threads` : "";
  return words.length ? words.join(", ") + by : "nothing";
}

/** Layers from the call to the cells; their times add up to the call's. */
function layers(
  config: Config,
  board: BoardTables,
  latency: number,
  driver: number,
  flash: number,
  of: Flashed,
): Layer[] {
  const array = Math.min(flash, arrayTime(of, board));
  const fs = FS_NAMES[config.fs] ?? config.fs;
  const below = config.fs === "ubifs" ? "UBIFS over UBI" : fs;
  const hardware = board.ecc.kind !== "software-subpage";
  return [
    {
      name: `System call, page cache, ${below}`,
      what: "finds pages, copies, compresses, makes nodes, waits for threads",
      ns: latency - driver,
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
    let driver = 0;
    let own = 0;
    let calls = 0;
    const pause = answer.op_names.indexOf("pause");
    const compute = answer.op_names.indexOf("compute");
    for (let at = 0; at < columns.request_op.length; at += 1) {
      if (columns.request_op[at] === pause) continue;
      if (isCall(answer.op_names[columns.request_op[at] as number])) calls += 1;
      driver += columns.request_driver[at] as number;
      if (columns.request_op[at] === compute) {
        own += (columns.request_latency[at] as number) - (columns.request_driver[at] as number);
      }
    }
    const { time_ns, flash_time_ns, flash_reads, flash_programs, flash_erases } = answer.counts;
    const of = {
      reads: flash_reads,
      programs: flash_programs,
      erases: flash_erases,
      background: 0,
    };
    title.textContent = `All ${count(calls)} calls: ${time(time_ns)}`;
    const all = layers(config, board, time_ns, Math.max(driver, flash_time_ns), flash_time_ns, of);
    const first = all[0] as Layer;
    if (own > 0) {
      first.ns -= own;
      all.unshift({ ...OWN, ns: own });
    }
    place.replaceChildren(...all.map((layer) => row(layer, time_ns)));
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
  const all = layers(
    config,
    board,
    latency,
    at(columns.request_driver),
    at(columns.request_flash),
    of,
  );
  if (op === "compute") all[0] = { ...OWN, ns: (all[0] as Layer).ns };
  place.replaceChildren(...all.map((layer) => row(layer, latency)));
}
