/**
 * The papers' micro-benchmarks, the same operations to the byte as python/flashbed/plan/workloads/
 * micro_read.py and micro_write.py make, and Python's random numbers, which they draw from.
 */

import type { Config } from "./types";

export const SETTLE_NS = 10_000_000_000;
const HEADER = "flashbed-ops 1";
const FILE = "file.bin";
const WRITE_BYTES = 4096;
const SEED = 1;
/** Each request, and each page of the file, is a line of text here: an address may claim billions. */
const REQUESTS_MAX = 262_144;
const FILE_KIB_MAX = 1_048_576;

/** random.Random(seed).random of Python: MT19937, seeded by an array of one number. */
export function pythonRandom(seed: number): () => number {
  const state = new Uint32Array(624);
  state[0] = 19650218;
  for (let at = 1; at < 624; at += 1) {
    const before = (state[at - 1] as number) ^ ((state[at - 1] as number) >>> 30);
    state[at] = Math.imul(before, 1812433253) + at;
  }
  let at = 1;
  for (let turn = 0; turn < 624; turn += 1) {
    const before = (state[at - 1] as number) ^ ((state[at - 1] as number) >>> 30);
    state[at] = ((state[at] as number) ^ Math.imul(before, 1664525)) + seed;
    at += 1;
    if (at >= 624) {
      state[0] = state[623] as number;
      at = 1;
    }
  }
  for (let turn = 0; turn < 623; turn += 1) {
    const before = (state[at - 1] as number) ^ ((state[at - 1] as number) >>> 30);
    state[at] = ((state[at] as number) ^ Math.imul(before, 1566083941)) - at;
    at += 1;
    if (at >= 624) {
      state[0] = state[623] as number;
      at = 1;
    }
  }
  state[0] = 0x80000000;
  let next = 624;
  const word = (): number => {
    if (next >= 624) {
      for (let k = 0; k < 624; k += 1) {
        const y =
          ((state[k] as number) & 0x80000000) | ((state[(k + 1) % 624] as number) & 0x7fffffff);
        const odd = y & 1 ? 0x9908b0df : 0;
        state[k] = (state[(k + 397) % 624] as number) ^ (y >>> 1) ^ odd;
      }
      next = 0;
    }
    let y = state[next] as number;
    next += 1;
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    y ^= y >>> 18;
    return y >>> 0;
  };
  return () => {
    const high = word() >>> 5;
    const low = word() >>> 6;
    return (high * 67108864 + low) / 9007199254740992;
  };
}

function text(lines: string[]): string {
  return `${[HEADER, ...lines].join("\n")}\n`;
}

function prepared(fileBytes: number): string {
  const lines: string[] = [];
  if (fileBytes > 0) {
    lines.push(`open 0 ${FILE} rw,create`);
    for (let offset = 0; offset < fileBytes; offset += WRITE_BYTES) {
      lines.push(`write 0 ${offset} ${Math.min(WRITE_BYTES, fileBytes - offset)} ${SEED} 0`);
    }
    lines.push("fsync 0", "close 0");
  }
  lines.push("sync", `pause ${SETTLE_NS}`, "prepared");
  return text(lines);
}

function offsets(config: Config, fileBytes: number): number[] {
  const { requests, requestBytes, order } = config;
  const sequential = Array.from({ length: requests }, (_, index) => index * requestBytes);
  if (order === "sequential") return sequential;
  const draw = pythonRandom(1);
  const places = Math.floor(fileBytes / requestBytes);
  return sequential.map(() => Math.floor(draw() * places) * requestBytes);
}

/** Preparation and body of `micro-read` and `micro-write`. */
export function micro(config: Config): { prepare: string; body: string } {
  const fileBytes = config.fileKib * 1024;
  const { requests, requestBytes, order } = config;
  const reads = config.program === "micro-read";
  if (requests > REQUESTS_MAX) throw new Error(`more than ${REQUESTS_MAX} requests`);
  if (config.fileKib > FILE_KIB_MAX) throw new Error(`a file of more than ${FILE_KIB_MAX} KiB`);
  if (requestBytes < 1) throw new Error("requests of no bytes");
  if (fileBytes < requestBytes) throw new Error("a request does not fit the file: make it larger");
  if (order === "sequential" && requests * requestBytes > fileBytes) {
    throw new Error(
      `${requests} requests of ${requestBytes} bytes pass the end of a file of ` +
        `${config.fileKib} KiB: make the file larger, or the requests fewer or random`,
    );
  }
  const at = offsets(config, fileBytes);
  if (reads) {
    const lines = at.map((offset) => `read 0 ${offset} ${requestBytes}`);
    const before = ["drop_caches", `open 0 ${FILE} ro`, "mark"];
    return { prepare: prepared(fileBytes), body: text([...before, ...lines]) };
  }
  const lines = at.map((offset) => `write 0 ${offset} ${requestBytes} ${SEED + 1} 0`);
  const isNew = order === "sequential";
  const open = `open 0 ${FILE} ${isNew ? "rw,create" : "rw"}`;
  return { prepare: prepared(isNew ? 0 : fileBytes), body: text([open, "mark", ...lines]) };
}
