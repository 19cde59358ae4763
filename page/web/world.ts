/** Boards, kernels and recorded programs, and a configuration as the simulator takes it. */

import { micro, SETTLE_NS } from "./micro";
import { isMicro } from "./state";
import type { BoardTables, Config, KernelTables, SimRequest } from "./types";

interface Common {
  /** Every text by itself, where their lines cannot be laid beside each other. */
  whole?: string[];
  lines?: string;
  values?: string[];
}

interface Program {
  name: string;
  title: string;
  variants: Record<string, number>;
  prepare: Common;
  body: Common;
}

export interface World {
  boards: Record<
    string,
    { title: string; usual: BoardTables; priced: BoardTables; endurance: number | null }
  >;
  kernels: Record<
    string,
    {
      title: string;
      sim: KernelTables;
      shipped_kib: Record<string, number>;
      compressors: Record<string, Record<string, string>>;
    }
  >;
  programs: Program[];
}

/** A program that was dropped onto the page. */
export interface Dropped {
  name: string;
  prepare: string;
  body: string;
}

/** As python/flashbed/formats/profiles.py has it. */
const HAMMING_CODE_BYTES = 3;
const HAMMING_PLACE_BYTES: Record<number, number> = { 8: 3, 16: 6, 64: 24, 128: 48 };
const MARK = "\u0001";
const ROWS_MAX = 4_000_000;
const UNKEPT = /^(pause|compute) /;
const texts = new Map<string, string>();

function variant(common: Common, number: number): string {
  if (common.whole) return common.whole[number] ?? "";
  const parts = (common.lines ?? "").split(MARK);
  const joined = common.values?.[number] ?? "";
  const values = parts.length > 1 ? joined.split("\t") : [];
  let text = parts[0] ?? "";
  for (let at = 1; at < parts.length; at += 1) text += (values[at - 1] ?? "") + (parts[at] ?? "");
  return text;
}

function remembered(key: string, make: () => string): string {
  const known = texts.get(key);
  if (known !== undefined) return known;
  const made = make();
  if (texts.size > 40) texts.clear();
  texts.set(key, made);
  return made;
}

/** Preparation and body of what is chosen. */
export function operations(
  world: World,
  config: Config,
  dropped: Dropped | null,
): { prepare: string; body: string } {
  if (isMicro(config.program)) return micro(config);
  if (config.program === "own") {
    if (!dropped) throw new Error("drop a program onto the page, or choose one");
    return dropped;
  }
  const program = world.programs.find((one) => one.name === config.program);
  if (!program) throw new Error(`there is no program ${config.program}`);
  const key = variantKey(config);
  const number = program.variants[key];
  if (number === undefined) {
    throw new Error(`${config.fs} cannot be mounted with compr=${config.compressor}`);
  }
  const name = `${program.name} ${number}`;
  const prepare = remembered(`p ${name}`, () => variant(program.prepare, number));
  const body = remembered(`b ${name}`, () => variant(program.body, number));
  if (config.think) return { prepare, body };
  const flat = remembered(`f ${name}`, () =>
    body
      .split("\n")
      .filter((line) => !UNKEPT.test(line))
      .join("\n"),
  );
  return { prepare, body: flat };
}

function variantKey(config: Config): string {
  if (config.fs === "yaffs2") return "yaffs2";
  if (config.compressor === "default") return `${config.fs} default ${config.kernel}`;
  return `${config.fs} ${config.compressor}`;
}

/** The profile with what is other than there, or why there can be no such chip. */
export function boardOf(world: World, config: Config): BoardTables {
  const profile = world.boards[config.board];
  if (!profile) throw new Error(`there is no board ${config.board}`);
  const asked = config.fs !== "yaffs2" && config.compressor !== "default";
  const tables = asked ? profile.priced : profile.usual;
  const chip = { ...tables.chip, ...config.chip };
  const partition = { ...tables.partition };
  if (config.blocks > 0) partition.blocks = config.blocks;
  const ecc = { ...tables.ecc };
  if (chip.blocks < partition.first_block + partition.blocks) {
    throw new Error(`the chip has ${chip.blocks} blocks`);
  }
  if (chip.page_bytes % ecc.step_bytes !== 0) {
    throw new Error(`a page of ${chip.page_bytes} bytes is not whole ECC steps`);
  }
  const code = (chip.page_bytes / ecc.step_bytes) * HAMMING_CODE_BYTES;
  const place = HAMMING_PLACE_BYTES[chip.oob_bytes] ?? 0;
  if (ecc.kind === "software-subpage" && code > place) {
    throw new Error(
      `the software ECC of ${config.board} does not fit a page of ${chip.page_bytes} bytes: ` +
        "choose a board with ECC in hardware",
    );
  }
  return { ...tables, chip, partition, ecc };
}

/** The kernel, with a file system that is mounted with `compr=`. */
function kernelOf(world: World, config: Config): KernelTables {
  const profile = world.kernels[config.kernel];
  if (!profile) throw new Error(`there is no kernel ${config.kernel}`);
  const { fs, compressor } = config;
  if (fs === "yaffs2" || compressor === "default") return profile.sim;
  const found = profile.compressors[fs]?.[compressor];
  if (!found) {
    const able = Object.keys(profile.compressors[fs] ?? {}).join(", ");
    throw new Error(
      `${fs} of Linux ${config.kernel} cannot be mounted with compr=${compressor}: ${able}`,
    );
  }
  if (fs === "ubifs") return { ...profile.sim, ubifs: { ...profile.sim.ubifs, compressor: found } };
  const compressors = found === "none" ? [] : [found];
  return { ...profile.sim, jffs2: { ...profile.sim.jffs2, compressors } };
}

/** The window of read-ahead in KiB. */
export function windowOf(world: World, config: Config): number {
  if (config.readAhead >= 0) return config.readAhead;
  return world.kernels[config.kernel]?.shipped_kib[config.fs] ?? 0;
}

/** Blocks that are bad: spread evenly, so that a slider moves them little. */
export function badBlocks(config: Config, blocks: number): number[] {
  const count = Math.min(config.badBlocks, blocks);
  return Array.from({ length: count }, (_, index) => Math.floor(((index + 0.5) * blocks) / count));
}

/** The configuration as the simulator takes it. Throws what stands in its way. */
export function requestOf(world: World, config: Config, dropped: Dropped | null): SimRequest {
  const board = boardOf(world, config);
  const { prepare, body } = operations(world, config, dropped);
  const blocks = board.partition.blocks;
  return {
    header: {
      board,
      kernel: kernelOf(world, config),
      fs: config.fs === "ubifs" && config.bulkRead ? "ubifs,bulk_read" : config.fs,
      read_ahead_kib: windowOf(world, config),
      erases: config.worn > 0 ? new Array<number>(blocks).fill(config.worn) : [],
      bad_blocks: badBlocks(config, blocks),
      rows_max: ROWS_MAX,
    },
    prepare,
    body,
  };
}

/**
 * A dropped file as a program: flashbed-ops text, whose preparation ends with the line `prepared`.
 * Throws one line for anything else.
 */
export function readDropped(name: string, bytes: Uint8Array): Dropped {
  const begin = new TextDecoder("latin1").decode(bytes.subarray(0, 14));
  if (begin.startsWith("PAR1")) {
    throw new Error(
      `${name} is a recording: turn it into operations, ` +
        `flashbed ops show ${name} --compressor lzo > program.ops, and drop program.ops`,
    );
  }
  if (!begin.startsWith("flashbed-ops ")) {
    throw new Error(`${name} is no program: its first line is not flashbed-ops 1 or 2`);
  }
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Error(`${name} is no program: it has bytes that are not text`);
  }
  // As python/flashbed/workloads/own_operations.py parts it.
  const header = text.slice(0, text.indexOf("\n"));
  const rest = `sync\npause ${SETTLE_NS}\nprepared\n`;
  const at = text.indexOf("\nprepared\n");
  if (at < 0) return { name, prepare: `${header}\n${rest}`, body: text };
  const body = `${header}\n${text.slice(at + "\nprepared\n".length)}`;
  return { name, prepare: `${text.slice(0, at + 1)}${rest}`, body };
}
