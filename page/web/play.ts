/**
 * Where in a run one is: a time of the program, played at a steady pace. Gaps in which nothing
 * happens are squeezed, so that a program that sleeps for minutes plays in seconds.
 */

import type { Answer } from "./types";

/** All idle gaps that are longer than this share of the busy time are made as long as it. */
const GAP_SHARE = 1 / 120;

/** The index of the first number that is larger. */
export function above(sorted: ArrayLike<number>, value: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] as number) <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A time of the program <-> its place from 0 to 1 on the page. */
export class Scale {
  /** Times at which a squeezed gap begins and ends, and the places of both. */
  private readonly times: number[] = [0];
  private readonly places: number[] = [0];
  readonly end: number;
  readonly squeezed: boolean;

  constructor(answer: Answer, squeeze: boolean) {
    const { request_start, request_latency, flash_start } = answer.columns;
    const last = flash_start.length ? (flash_start[flash_start.length - 1] as number) : 0;
    this.end = Math.max(answer.counts.elapsed_ns, last, 1);
    const cap = Math.max(answer.counts.time_ns * GAP_SHARE, 1000);
    let place = 0;
    let at = 0;
    let request = 0;
    let flash = 0;
    let squeezed = false;
    const reach = (time: number) => {
      const gap = time - at;
      if (gap > cap && squeeze) {
        this.times.push(at, time);
        this.places.push(place, place + cap);
        place += cap;
        squeezed = true;
      } else if (gap > 0) {
        place += gap;
      }
      at = Math.max(at, time);
    };
    while (request < request_start.length || flash < flash_start.length) {
      const nextRequest = request_start[request] ?? Number.POSITIVE_INFINITY;
      const nextFlash = flash_start[flash] ?? Number.POSITIVE_INFINITY;
      if (nextRequest <= nextFlash) {
        reach(nextRequest);
        const over = nextRequest + (request_latency[request] ?? 0);
        // A call that takes long is not idle; one that sleeps is.
        if (
          over > at &&
          (answer.op_names[answer.columns.request_op[request] ?? 0] ?? "") !== "pause"
        ) {
          place += over - at;
          at = over;
        }
        request += 1;
      } else {
        reach(nextFlash);
        flash += 1;
      }
    }
    reach(this.end);
    this.times.push(this.end);
    this.places.push(place);
    this.squeezed = squeezed;
    const whole = place || 1;
    for (let index = 0; index < this.places.length; index += 1) {
      this.places[index] = (this.places[index] as number) / whole;
    }
  }

  place(time: number): number {
    return between(this.times, this.places, time);
  }

  time(place: number): number {
    return between(this.places, this.times, place);
  }
}

function between(from: number[], to: number[], value: number): number {
  const next = above(from, value);
  if (next === 0) return to[0] as number;
  if (next === from.length) return to[to.length - 1] as number;
  const left = from[next - 1] as number;
  const right = from[next] as number;
  const share = right > left ? (value - left) / (right - left) : 0;
  return (to[next - 1] as number) + share * ((to[next] as number) - (to[next - 1] as number));
}

/** Plays from 0 to 1 and tells who listens. */
export class Player {
  /** Where it is, 0 to 1. */
  place = 0;
  /** Seconds that the whole takes at speed 1. */
  wholeSeconds = 14;
  speed = 1;
  playing = false;
  /** Frames drawn since the beginning, and how long the page was busy with each: for the tests. */
  readonly frames: number[] = [];
  private before = 0;

  constructor(private readonly moved: (place: number, jumped: boolean) => void) {}

  play(): void {
    if (this.playing) return;
    if (this.place >= 1) this.seek(0);
    this.playing = true;
    this.before = 0;
    requestAnimationFrame((now) => this.frame(now));
  }

  pause(): void {
    if (!this.playing) return;
    this.playing = false;
    this.moved(this.place, false);
  }

  seek(place: number): void {
    this.place = Math.min(1, Math.max(0, place));
    this.moved(this.place, true);
  }

  private frame(now: number): void {
    if (!this.playing) return;
    if (this.before > 0) {
      const passed = now - this.before;
      if (this.frames.length < 10_000) this.frames.push(passed);
      this.place = Math.min(1, this.place + (passed / 1000 / this.wholeSeconds) * this.speed);
      if (this.place >= 1) this.playing = false;
      this.moved(this.place, false);
    }
    this.before = now;
    if (this.playing) requestAnimationFrame((next) => this.frame(next));
  }
}
