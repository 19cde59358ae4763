/** What is chosen, and the address that says it. */

import { fileSystems } from "./filesystems";
import type { ChipKey, Config } from "./types";

export const USUAL: Config = {
  program: "sqlite-wal",
  think: true,
  fs: "ubifs",
  bulkRead: false,
  kernel: "6.1",
  readAhead: -1,
  compressor: "default",
  board: "emulated",
  chip: {},
  blocks: 0,
  badBlocks: 0,
  worn: 0,
  requests: 256,
  requestBytes: 4096,
  fileKib: 4096,
  order: "random",
};

export const CHIP_KEYS: ChipKey[] = [
  "page_bytes",
  "oob_bytes",
  "pages_per_block",
  "read_array_ns",
  "program_array_ns",
  "erase_array_ns",
  "bus_read_ns",
  "bus_program_ns",
  "column_change_ns",
];
const MICRO = ["requests", "requestBytes", "fileKib", "order"] as const;
const NUMBER_MAX = 1_000_000_000;
const ADDRESS_CHARACTERS = 10_000;

/** Whether a program is one of the papers' micro-benchmarks, which have sliders of their own. */
export function isMicro(program: string): boolean {
  return program === "micro-read" || program === "micro-write";
}

/** The configuration as `a=b&c=d`: program and file system, and what is other than usual. */
export function encode(config: Config): string {
  const words = new URLSearchParams();
  for (const [key, usual] of Object.entries(USUAL) as [keyof Config, unknown][]) {
    if (key === "chip") continue;
    const isUnused = (MICRO as readonly string[]).includes(key) && !isMicro(config.program);
    const isNamed = key === "program" || key === "fs";
    if (!isUnused && (isNamed || config[key] !== usual)) words.set(key, String(config[key]));
  }
  for (const key of CHIP_KEYS) {
    const value = config.chip[key];
    if (value !== undefined) words.set(key, String(value));
  }
  return words.toString();
}

/** Parts of the page that can stand alone in another page's frame. */
export const VIEWS = ["answer", "compare", "chip", "time", "stack"];

/** The part that an address asks for; none is the whole page. */
export function viewOf(text: string): string {
  const view = new URLSearchParams(text).get("view") ?? "";
  return VIEWS.includes(view) ? view : "";
}

function wholeNumber(text: string, least: number): number | null {
  if (!/^-?\d{1,10}$/.test(text)) return null;
  const value = Number(text);
  return value >= least && value <= NUMBER_MAX ? value : null;
}

/**
 * The configuration of an address, and what of it could not be read. `known` says which names there
 * are; an unknown name leaves what is usual.
 */
export function decode(
  text: string,
  known: { programs: string[]; kernels: string[]; boards: string[] },
): { config: Config; odd: string[] } {
  const config: Config = { ...USUAL, chip: {} };
  const odd: string[] = [];
  const among: Partial<Record<keyof Config, readonly string[]>> = {
    program: known.programs,
    kernel: known.kernels,
    board: known.boards,
    fs: fileSystems(),
    compressor: ["default", "none", "lzo", "zlib", "zstd"],
    order: ["sequential", "random"],
    think: ["true", "false"],
    bulkRead: ["true", "false"],
  };
  for (const [key, value] of new URLSearchParams(text.slice(0, ADDRESS_CHARACTERS))) {
    if (key === "view") continue; // see viewOf
    const chipKey = CHIP_KEYS.find((name) => name === key);
    if (chipKey) {
      const number = wholeNumber(value, 0);
      if (number === null) odd.push(`${key}=${value}`);
      else config.chip[chipKey] = number;
      continue;
    }
    if (!Object.hasOwn(USUAL, key) || key === "chip") {
      odd.push(key);
      continue;
    }
    const name = key as keyof Config;
    const words = among[name];
    const number = wholeNumber(value, name === "readAhead" ? -1 : 0);
    let read: string | number | boolean | null;
    if (words) read = words.includes(value) ? value : null;
    else read = number;
    if (name === "think" || name === "bulkRead") read = read === null ? null : read === "true";
    if (read === null) odd.push(`${key}=${value}`);
    else Object.assign(config, { [name]: read });
  }
  return { config, odd };
}
