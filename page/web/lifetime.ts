/**
 * Years until a block reaches its endurance, if rounds of the program follow each other without a
 * break. The arithmetic is that of python/flashbed/lifetimes/estimate.py, without its intervals.
 */

import type { Answer, BoardTables, Causes } from "./types";

const YEAR_S = 365.25 * 86_400;
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

/** None where nothing wears, or nobody knows what the chip endures. */
export function lifetime(
  answer: Answer,
  board: BoardTables,
  endurance: number | null,
): Lifetime | null {
  if (endurance === null || answer.unpriced !== null || answer.counts.failed) return null;
  const seconds = answer.counts.elapsed_ns / 1e9;
  const blocks = board.partition.blocks;
  const blockBytes = board.chip.page_bytes * board.chip.pages_per_block;
  const flushed = answer.flush ? total(answer.flush.causes) : 0;
  const programmed = (total(answer.counts.causes) + flushed) / blockBytes;
  const { all, worst } = erasesOf(answer);
  if ((all === 0 && programmed === 0) || seconds <= 0) return null;
  const steady = all >= STEADY_SHARE * programmed && all >= FEW_ERASES;
  // Every programmed page is erased one day.
  const rate = (steady ? Math.max(all, programmed) : programmed) / (blocks * seconds);
  const levelled = rate > 0 ? endurance / rate / YEAR_S : null;
  const asSeen = steady && worst >= FEW_ERASES ? endurance / (worst / seconds) / YEAR_S : null;
  return { steady, levelled, asSeen };
}
