/**
 * Years until a block reaches its endurance, if rounds of the program follow each other without a
 * break. The arithmetic is that of python/flashbed/answers/lifetimes/estimate.py, without its intervals.
 */

import type { Answer, BoardTables, Causes } from "./types";

const DAY_S = 86_400;
const YEAR_S = 365.25 * DAY_S;
/** Erased over programmed blocks, from which on a measurement counts as steady. */
const STEADY_SHARE = 0.9;
/** Fewer erases, in all or of the worst block, say nothing about collecting or levelling. */
const FEW_ERASES = 10;

export interface Lifetime {
  /** Whether erasing kept up with programming. */
  steady: boolean;
  /** Every block is erased as often as every other; an upper bound where not steady. */
  levelled: number | null;
  /** The most erased block keeps its rate; null where not steady, or after few erases. */
  asSeen: number | null;
}

export function total(causes: Causes): number {
  return causes.data + causes.metadata + causes.padding + causes.collection + causes.wear_levelling;
}

/** Erases of a round, its flush included: of all blocks, and of the worst. */
export function erasesOf(answer: Answer): { all: number; worst: number } {
  const { wear_measured: measured, wear_flush: flush } = answer.columns;
  let all = 0;
  let worst = 0;
  for (let at = 0; at < measured.length; at += 1) {
    const erases = (measured[at] ?? 0) + (flush[at] ?? 0);
    all += erases;
    worst = Math.max(worst, erases);
  }
  return { all, worst };
}

/** Erases of a round in the long run, and whether they were seen: every page is erased one day. */
export function lasting(answer: Answer, board: BoardTables): { erases: number; steady: boolean } {
  const programs = answer.counts.flash_programs + (answer.flush?.flash_programs ?? 0);
  const programmed = programs / board.chip.pages_per_block;
  const { all } = erasesOf(answer);
  const steady = all >= STEADY_SHARE * programmed && all >= FEW_ERASES;
  return { erases: steady ? Math.max(all, programmed) : programmed, steady };
}

/** None where nothing wears, or nobody knows what the chip endures. */
export function lifetime(
  answer: Answer,
  board: BoardTables,
  endurance: number | null,
): Lifetime | null {
  if (endurance === null || answer.unpriced !== null || answer.counts.failed) return null;
  const seconds = answer.counts.elapsed_ns / 1e9;
  const blocks = board.partition.blocks;
  const { all, worst } = erasesOf(answer);
  const { erases, steady } = lasting(answer, board);
  if ((all === 0 && erases === 0) || seconds <= 0) return null;
  const rate = erases / (blocks * seconds);
  const levelled = rate > 0 ? endurance / rate / YEAR_S : null;
  const asSeen = steady && worst >= FEW_ERASES ? endurance / (worst / seconds) / YEAR_S : null;
  return { steady, levelled, asSeen };
}

/** A program that sleeps for more of its time than this has a pace of its own. */
const ASLEEP_SHARE = 0.5;

/** How often a program runs: as it was said, or one run after the other; null if neither. */
export function runsPerDay(given: number | null, answer: Answer): number | null {
  const { elapsed_ns: elapsed, time_ns: busy } = answer.counts;
  if (given !== null) return given;
  return elapsed > 0 && 1 - busy / elapsed > ASLEEP_SHARE ? (DAY_S * 1e9) / elapsed : null;
}

/** One of several programs that share the flash. */
export interface Share {
  runsPerDay: number | null;
  programsPerRun: number;
  erasesPerDay: number | null;
  /** Of the erases of all. */
  share: number | null;
}

/** Several programs on one flash: their erases add up. */
export interface Mixed {
  shares: Share[];
  /** Years until the mean block reaches its endurance; null where a part is not known. */
  years: number | null;
  steady: boolean;
}

export function mixed(
  parts: { answer: Answer; given: number | null }[],
  board: BoardTables,
  endurance: number | null,
): Mixed {
  const found = parts.map(({ answer, given }) => {
    const often = answer.unpriced === null ? runsPerDay(given, answer) : given;
    const { erases, steady } = lasting(answer, board);
    const known = often !== null && !answer.counts.failed;
    return {
      runsPerDay: often,
      programsPerRun: answer.counts.flash_programs + (answer.flush?.flash_programs ?? 0),
      erasesPerDay: known ? often * erases : null,
      steady,
    };
  });
  let all: number | null = 0;
  for (const { erasesPerDay: one } of found) all = all === null || one === null ? null : all + one;
  const shares = found.map((part) => ({
    ...part,
    share: all && part.erasesPerDay !== null ? part.erasesPerDay / all : null,
  }));
  const spent = all ? all / DAY_S : null;
  const years =
    spent === null || endurance === null
      ? null
      : (endurance * board.partition.blocks) / spent / YEAR_S;
  return { shares, years, steady: found.every((part) => part.steady || part.erasesPerDay === 0) };
}
