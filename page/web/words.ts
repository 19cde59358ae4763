/** Numbers and differences in words. */

import { titleOf } from "./filesystems";
import type { Answer, Causes, Config } from "./types";

const FEW = 5;
const WORD_CHARACTERS = 40;
const grouped = new Intl.NumberFormat("en-GB");

/** A whole number with commas. */
export function count(value: number): string {
  return grouped.format(value);
}

/** Bytes of all causes. */
export function total(causes: Causes): number {
  return causes.data + causes.metadata + causes.padding + causes.collection + causes.wear_levelling;
}

/** The first of some words of others, cut where they are long, and how many more there are. */
export function few(words: string[]): string {
  const cut = words
    .slice(0, FEW)
    .map((word) => (word.length > WORD_CHARACTERS ? `${word.slice(0, WORD_CHARACTERS)}…` : word));
  const more = words.length - cut.length;
  return cut.join(", ") + (more > 0 ? ` and ${count(more)} more` : "");
}

function digits(value: number): string {
  if (value >= 100) return grouped.format(Math.round(value));
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** A time in the unit that suits it. */
export function time(ns: number): string {
  if (ns === 0) return "0";
  if (ns < 1e3) return `${ns} ns`;
  if (ns < 1e6) return `${digits(ns / 1e3)} µs`;
  if (ns < 1e9) return `${digits(ns / 1e6)} ms`;
  if (ns < 60e9) return `${digits(ns / 1e9)} s`;
  if (ns < 3600e9) return `${digits(ns / 60e9)} min`;
  return `${digits(ns / 3600e9)} h`;
}

/** Bytes in the unit that suits them. */
export function bytes(value: number): string {
  if (value < 1024) return `${value} B`;
  if (value < 1 << 20) return `${digits(value / 1024)} KiB`;
  return value < 1 << 30 ? `${digits(value / (1 << 20))} MiB` : `${digits(value / (1 << 30))} GiB`;
}

/** Nanojoules in the unit that suits them. */
export function energy(nj: bigint): string {
  const value = Number(nj);
  if (value === 0) return "0";
  if (value < 1e3) return `${value} nJ`;
  if (value < 1e6) return `${digits(value / 1e3)} µJ`;
  return value < 1e9 ? `${digits(value / 1e6)} mJ` : `${digits(value / 1e9)} J`;
}

/** Years in the unit that suits them. */
export function years(value: number): string {
  if (value >= 1000) return "over 1,000 years";
  if (value >= 1) return `${digits(value)} years`;
  const days = value * 365.25;
  if (days >= 10) return `${Math.round(days)} days`;
  return days >= 1 ? `${digits(days)} days` : `${digits(days * 24)} hours`;
}

/** Bytes to the flash per byte that the program wrote; null where it wrote none. */
export function amplification(answer: Answer): number | null {
  const written = answer.counts.bytes_written;
  if (written === 0) return null;
  const flushed = answer.flush ? total(answer.flush.causes) : 0;
  return (total(answer.counts.causes) + flushed) / written;
}

/** How one number is to another: `2.30 × more`. */
export function ratio(value: number, other: number, less = "less"): string {
  if (value === other) return "the same";
  const factor = value > other ? value / other : other / value;
  const word = value > other ? "more" : less;
  if (factor < 1.005) return `hardly ${word}`;
  if (factor < 1.5) return `${((factor - 1) * 100).toFixed(factor < 1.1 ? 1 : 0)} % ${word}`;
  return `${digits(factor)} × ${word}`;
}

interface Side {
  config: Config;
  answer: Answer;
}

/** What a reader may call a configuration beside another: what they differ in. */
export function nameOf(config: Config, other: Config): string {
  const words: string[] = [];
  const program = config.program !== other.program;
  if (program) words.push(config.program);
  const fs = titleOf(config.fs);
  if (config.fs !== other.fs || (!program && config.bulkRead !== other.bulkRead)) {
    words.push(config.bulkRead ? `${fs} with bulk_read` : fs);
  }
  if (config.kernel !== other.kernel) words.push(`Linux ${config.kernel}`);
  if (config.readAhead !== other.readAhead) {
    words.push(
      config.readAhead < 0
        ? "the kernel's read-ahead"
        : config.readAhead === 0
          ? "no read-ahead"
          : `${config.readAhead} KiB of read-ahead`,
    );
  }
  if (config.compressor !== other.compressor) words.push(`compr=${config.compressor}`);
  if (config.board !== other.board) words.push(config.board);
  if (words.length === 0) words.push(fs);
  return words.join(", ");
}

/** The difference in sentences: what changed most first, each with its likely reason. */
export function difference(now: Side, then: Side): string[] {
  const own = nameOf(now.config, then.config);
  const other = nameOf(then.config, now.config);
  const sentences: { weight: number; text: string }[] = [];
  const compare = (verb: string, noun: string, value: number, before: number, why: string) => {
    if (value === before) return;
    const weight = Math.abs(Math.log((value + 1) / (before + 1)));
    const plural = noun ? `${noun}s` : "time";
    let text = `${own} ${verb} ${ratio(value, before, noun ? "fewer" : "less")} ${plural} than ${other}`;
    if (value === 0) text = `${own} ${verb} no ${noun}; ${other} ${verb} ${count(before)}`;
    else if (before === 0) text = `${own} ${verb} ${count(value)} ${plural}; ${other} ${verb} none`;
    sentences.push({ weight, text: `${text}${value && before ? why : ""}.` });
  };
  const a = now.answer.counts;
  const b = then.answer.counts;
  if (now.answer.unpriced === null && then.answer.unpriced === null) {
    compare("takes", "", a.time_ns, b.time_ns, timeReason(now, then));
  }
  const why = programReason(now, then);
  compare("writes", "flash page", a.flash_programs, b.flash_programs, why);
  compare("reads", "flash page", a.flash_reads, b.flash_reads, readReason(now, then));
  compare("erases", "block", a.flash_erases, b.flash_erases, "");
  sentences.sort((one, two) => two.weight - one.weight);
  return sentences
    .filter((sentence) => sentence.weight > 0.004)
    .slice(0, 4)
    .map((sentence) => sentence.text);
}

function timeReason(now: Side, then: Side): string {
  const flash = now.answer.counts.flash_time_ns - then.answer.counts.flash_time_ns;
  const all = now.answer.counts.time_ns - then.answer.counts.time_ns;
  if (all === 0) return "";
  const share = flash / all;
  if (share > 0.75) return ", nearly all of it time of the chip";
  if (share > 0.35) return ", about half of it time of the chip";
  return ", most of it time of the processor";
}

function programReason(now: Side, then: Side): string {
  const names: [keyof Answer["counts"]["causes"], string][] = [
    ["data", "data that the program wrote"],
    ["metadata", "metadata"],
    ["padding", "padding of pages that could not wait"],
    ["collection", "garbage collection"],
    ["wear_levelling", "wear levelling"],
  ];
  const a = now.answer.counts.causes;
  const b = then.answer.counts.causes;
  const all = total(a) - total(b);
  if (all === 0) return "";
  let best = names[0] as [keyof typeof a, string];
  for (const name of names) {
    if ((a[name[0]] - b[name[0]]) / all > (a[best[0]] - b[best[0]]) / all) best = name;
  }
  const share = (a[best[0]] - b[best[0]]) / all;
  return share > 0.4 ? `, mostly ${best[1]} (${bytes(Math.abs(a[best[0]] - b[best[0]]))})` : "";
}

function readReason(now: Side, then: Side): string {
  const a = now.answer.counts;
  const b = then.answer.counts;
  if (a.cache_adds !== b.cache_adds) {
    return `: ${count(a.cache_adds)} pages came into the page cache, there ${count(b.cache_adds)}`;
  }
  return "";
}
