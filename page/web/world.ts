/** Boards, kernels and recorded programs, and a configuration as the simulator takes it. */

import type { EnergyTables } from "./energy";
import { compresses, type FileSystemFacts } from "./filesystems";
import type { Dropped, Program, Variants } from "./program";
import { isMicro } from "./state";
import type { BoardTables, Config, KernelTables, Micro, SimRequest } from "./types";

export interface World {
  file_systems: Record<string, FileSystemFacts>;
  boards: Record<
    string,
    {
      title: string;
      usual: BoardTables;
      priced: BoardTables;
      endurance: number | null;
      energy: EnergyTables | null;
    }
  >;
  kernels: Record<
    string,
    {
      title: string;
      sim: KernelTables;
      shipped_kib: Record<string, number>;
      /** By file system and `compr=`, the tables of that file system. */
      compressors: Record<string, Record<string, Record<string, unknown>>>;
    }
  >;
  programs: Program[];
  /** Pause at the end of a preparation. */
  settle_ns: number;
}

const MARK = "\u0001";
/** Of calls and of flash operations: with twice as many a million calls would fill 500 MB. */
const ROWS_MAX = 2_000_000;
const UNKEPT = /^(pause|compute) /;
const texts = new Map<string, string>();

function variant(common: Variants, number: number): string {
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

type Operations = Pick<SimRequest, "prepare" | "body"> & Pick<SimRequest["header"], "program">;

/** A micro-benchmark, which the simulator makes: its operations are those of the package. */
function micro(config: Config): Operations {
  const asked: Micro = {
    pattern: config.order,
    requests: config.requests,
    request_bytes: config.requestBytes,
    file_bytes: config.fileKib * 1024,
  };
  return { program: { [config.program]: asked }, prepare: "", body: "" };
}

/** Preparation and body of what is chosen. */
function operations(world: World, config: Config, dropped: Dropped | null): Operations {
  if (isMicro(config.program)) return micro(config);
  if (config.program === "own") {
    if (!dropped) throw new Error("drop a program onto the page, or choose one");
    if (dropped.text !== null) return { program: "whole", prepare: "", body: dropped.text };
  }
  const program =
    config.program === "own"
      ? dropped?.program
      : world.programs.find((one) => one.name === config.program);
  if (!program) throw new Error(`there is no program ${config.program}`);
  const key = variantKey(config);
  const number = program.variants[key];
  if (number === undefined) {
    throw new Error(`${config.fs} cannot be mounted with compr=${config.compressor}`);
  }
  const part = dropped?.mix.findIndex((one) => one.program === program);
  const name = `${config.program} ${part} ${number}`;
  const prepare = remembered(`p ${name}`, () => variant(program.prepare, number));
  const body = remembered(`b ${name}`, () => variant(program.body, number));
  if (config.think) return { program: "texts", prepare, body };
  const flat = remembered(`f ${name}`, () =>
    body
      .split("\n")
      .filter((line) => !UNKEPT.test(line))
      .join("\n"),
  );
  return { program: "texts", prepare, body: flat };
}

/** Forgets the texts of a program that was dropped, before another takes its place. */
export function forgetTexts(): void {
  texts.clear();
}

function variantKey(config: Config): string {
  if (!compresses(config.fs)) return config.fs;
  if (config.compressor === "default") return `${config.fs} default ${config.kernel}`;
  return `${config.fs} ${config.compressor}`;
}

/** The profile with what is other than there. The simulator says if there can be no such chip. */
export function boardOf(world: World, config: Config): BoardTables {
  const profile = world.boards[config.board];
  if (!profile) throw new Error(`there is no board ${config.board}`);
  const asked = compresses(config.fs) && config.compressor !== "default";
  const tables = asked ? profile.priced : profile.usual;
  const chip = { ...tables.chip, ...config.chip };
  const partition = { ...tables.partition };
  if (config.blocks > 0) partition.blocks = config.blocks;
  return { ...tables, chip, partition };
}

/** The kernel, with a file system that is mounted with `compr=`. */
function kernelOf(world: World, config: Config): KernelTables {
  const profile = world.kernels[config.kernel];
  if (!profile) throw new Error(`there is no kernel ${config.kernel}`);
  const { fs, compressor } = config;
  if (!compresses(fs) || compressor === "default") return profile.sim;
  const found = profile.compressors[fs]?.[compressor];
  if (!found) {
    const able = Object.keys(profile.compressors[fs] ?? {}).join(", ");
    throw new Error(
      `${fs} of Linux ${config.kernel} cannot be mounted with compr=${compressor}: ${able}`,
    );
  }
  return { ...profile.sim, [fs]: found };
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

/** What the case's axis of this name would be. */
function patternOf(config: Config): string {
  if (isMicro(config.program)) return config.order;
  if (config.program === "own") return "as-written";
  return config.think ? "recorded" : "flat-out";
}

/** The board's constants; none where its chip is changed. */
function energyOf(world: World, config: Config): SimRequest["header"]["energy"] {
  const board = world.boards[config.board];
  if (!board?.energy) return null;
  const chip = board.usual.chip;
  const isChanged = Object.entries(config.chip).some(
    ([key, value]) => chip[key as keyof typeof chip] !== value,
  );
  return isChanged ? null : { constants: board.energy, pattern: patternOf(config) };
}

/** The configuration as the simulator takes it. Throws what stands in its way. */
export function requestOf(world: World, config: Config, dropped: Dropped | null): SimRequest {
  const board = boardOf(world, config);
  const { program, prepare, body } = operations(world, config, dropped);
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
      program,
      settle_ns: world.settle_ns,
      energy: energyOf(world, config),
      lifetime: {
        endurance: world.boards[config.board]?.endurance ?? null,
        runs_per_day: null,
        others: [],
      },
    },
    prepare,
    body,
  };
}
