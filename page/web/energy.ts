/**
 * Energy above idle, from the constants of a board's profile. The arithmetic is that of
 * python/flashbed/answers/energy/fold.py, in whole nanojoules: two conventions that nothing adds up.
 */

import { isMicro } from "./state";
import type { Answer, Config } from "./types";
import { type World, windowOf } from "./world";

type Kind = "read" | "program" | "erase";
type PerKind = Record<Kind, number | null>;
/** A row of `[energy.paper]` or `[energy.supply]`: a condition and mean powers. */
export interface MeanPower {
  activity: string;
  fs?: string;
  pattern?: string;
  read_ahead?: string;
  cpu_uw?: number;
  mem_uw?: number;
  supply_uw?: number;
}

/** `[energy]` of a profile, without its sources. */
export interface EnergyTables {
  powers: MeanPower[];
  component: Record<string, number> | null;
}

/** The columns of `cases`, by their names there; null is unknown. */
export interface Energies {
  energy_nj: bigint | null;
  energy_cpu_nj: bigint | null;
  energy_mem_nj: bigint | null;
  component_cpu_busy_nj: bigint | null;
  component_cpu_driver_nj: bigint | null;
  component_memory_nj: bigint | null;
  component_flash_read_nj: bigint | null;
  component_flash_program_nj: bigint | null;
  component_flash_erase_nj: bigint | null;
  component_bus_nj: bigint | null;
}

export const COMPONENTS: [keyof Energies, string, string][] = [
  ["component_cpu_busy_nj", "processor outside the driver", "accent"],
  ["component_cpu_driver_nj", "processor in the driver", "collect"],
  ["component_memory_nj", "memory", "live"],
  ["component_flash_read_nj", "flash reads", "read"],
  ["component_flash_program_nj", "flash programs", "program"],
  ["component_flash_erase_nj", "flash erases", "erase"],
  ["component_bus_nj", "bus", "sync"],
];

const UNKNOWN: Energies = {
  energy_nj: null,
  energy_cpu_nj: null,
  energy_mem_nj: null,
  component_cpu_busy_nj: null,
  component_cpu_driver_nj: null,
  component_memory_nj: null,
  component_flash_read_nj: null,
  component_flash_program_nj: null,
  component_flash_erase_nj: null,
  component_bus_nj: null,
};
const READING = new Set(["open", "close", "read", "fadvise", "pause", "drop_caches"]);
const KINDS: Kind[] = ["read", "program", "erase"];

/** Energies of an answer; all are unknown where the board has no constants. */
export function energiesOf(world: World, config: Config, answer: Answer): Energies {
  const board = world.boards[config.board];
  if (!board?.energy) return UNKNOWN;
  const chip = board.usual.chip;
  const isChanged = Object.entries(config.chip).some(
    ([key, value]) => chip[key as keyof typeof chip] !== value,
  );
  if (isChanged) return UNKNOWN;
  const { powers, component } = board.energy;
  const paper = ofPaper(powers, world, config, answer);
  return { ...UNKNOWN, ...paper, ...(component ? ofComponents(component, answer) : {}) };
}

function timeOf(answer: Answer): number | null {
  return answer.unpriced === null ? answer.counts.time_ns : null;
}

/** Nanojoules; 1 ns at 1 uW is a millionth of a nanojoule. */
function nanojoules(timeNs: number, powerUw: number): bigint {
  return (BigInt(timeNs) * BigInt(powerUw) + 500_000n) / 1_000_000n;
}

/** What the program does: read, write, or null if it also computes. */
function activityOf(answer: Answer): string | null {
  if (answer.requests_left_out > 0) return null;
  const used = new Set(answer.columns.request_op);
  const ops = [...used].map((code) => answer.op_names[code] ?? "");
  if (ops.length === 0 || ops.includes("compute") || ops.includes("sql")) return null;
  if (ops.every((op) => op === "pause")) return null;
  return ops.every((op) => READING.has(op)) ? "read" : "write";
}

function patternOf(config: Config): string {
  if (isMicro(config.program)) return config.order;
  if (config.program === "own") return "as-written";
  return config.think ? "recorded" : "flat-out";
}

const CONDITION = ["activity", "fs", "pattern", "read_ahead"] as const;

function ofPaper(
  powers: MeanPower[],
  world: World,
  config: Config,
  answer: Answer,
): Partial<Energies> {
  const timeNs = timeOf(answer);
  const activity = activityOf(answer);
  if (timeNs === null || activity === null) return {};
  const own: Record<string, string> = {
    activity,
    fs: config.fs,
    pattern: patternOf(config),
    read_ahead: windowOf(world, config) > 0 ? "on" : "off",
  };
  // The most specific row; of those the one with the earlier key.
  const rank = (row: MeanPower) => {
    const given = CONDITION.map((key) => (row[key] === undefined ? "0" : "1")).join("");
    return `${given.replaceAll("0", "").length}${given}`;
  };
  const [best] = powers
    .filter((row) => CONDITION.every((key) => row[key] === undefined || row[key] === own[key]))
    .sort((one, two) => (rank(one) > rank(two) ? -1 : 1));
  if (!best) return {};
  if (best.supply_uw !== undefined) return { energy_nj: nanojoules(timeNs, best.supply_uw) };
  const cpu = nanojoules(timeNs, best.cpu_uw ?? 0);
  const mem = nanojoules(timeNs, best.mem_uw ?? 0);
  return { energy_nj: cpu + mem, energy_cpu_nj: cpu, energy_mem_nj: mem };
}

/** A price times a count: 0 if nothing was done, whether the price is known or not. */
function times(price: number | undefined, done: number | null): bigint | null {
  if (done === 0) return 0n;
  return price === undefined || done === null ? null : BigInt(price) * BigInt(done);
}

function sum(parts: (bigint | null)[]): bigint | null {
  let all = 0n;
  for (const part of parts) {
    if (part === null) return null;
    all += part;
  }
  return all;
}

function ofComponents(known: Record<string, number>, answer: Answer): Partial<Energies> {
  const { counts } = answer;
  const done: PerKind = {
    read: counts.flash_reads,
    program: counts.flash_programs,
    erase: counts.flash_erases,
  };
  const each = (part: string, unit: string, of: PerKind, kinds = KINDS) =>
    sum(kinds.map((kind) => times(known[`${part}_${kind}_${unit}`], of[kind])));
  const moved = times(known.memory_byte_pj, counts.bytes);
  const inCalls = withoutPauses(answer, done);
  const busyNs = inCalls && busyOutside(answer, each("driver", "ns", inCalls));
  return {
    component_cpu_busy_nj: busyNj(known.cpu_busy_uw, busyNs),
    component_cpu_driver_nj: each("driver", "nj", done),
    component_memory_nj: sum([
      busyNj(known.memory_busy_uw, busyNs),
      moved === null ? null : (moved + 500n) / 1000n,
    ]),
    component_flash_read_nj: each("flash", "nj", done, ["read"]),
    component_flash_program_nj: each("flash", "nj", done, ["program"]),
    component_flash_erase_nj: each("flash", "nj", done, ["erase"]),
    component_bus_nj: each("bus", "nj", done, ["read", "program"]),
  };
}

/** The CPU's time outside the driver; null where it is unknown. */
function busyOutside(answer: Answer, driverNs: bigint | null): number | null {
  const timeNs = timeOf(answer);
  if (driverNs === null || timeNs === null) return null;
  const rest = timeNs - Number(driverNs);
  return rest < 0 ? null : rest;
}

/** What a power makes of that time. */
function busyNj(powerUw: number | undefined, busyNs: number | null): bigint | null {
  if (busyNs === 0) return 0n;
  return powerUw === undefined || busyNs === null ? null : nanojoules(busyNs, powerUw);
}

/** Operations of the flash that did not begin in a pause; null if that is not known. */
function withoutPauses(answer: Answer, done: PerKind): PerKind | null {
  const { columns, op_names: names } = answer;
  const { request_op, request_start, request_flash, flash_start, flash_kind } = columns;
  const pause = names.indexOf("pause");
  const isBusy = request_op.some((op, row) => op === pause && (request_flash[row] as number) > 0);
  if (!isBusy) return done;
  if (answer.requests_left_out + answer.flash_left_out > 0) return null;
  const left = { ...done };
  let row = -1;
  for (let op = 0; op < flash_start.length; op += 1) {
    const at = flash_start[op] as number;
    while (row + 1 < request_start.length && (request_start[row + 1] as number) <= at) row += 1;
    while (row >= 0 && (request_start[row] as number) > at) row -= 1;
    const kind = KINDS[flash_kind[op] as number] as Kind;
    if (row >= 0 && request_op[row] === pause) left[kind] = (left[kind] ?? 0) - 1;
  }
  return left;
}

/** All components together; null if one is unknown. */
export function componentsOf(energies: Energies): bigint | null {
  return sum(COMPONENTS.map(([name]) => energies[name]));
}

/** The chip's array alone; null if a part of it is unknown. */
export function arrayOf(energies: Energies): bigint | null {
  return sum([
    energies.component_flash_read_nj,
    energies.component_flash_program_nj,
    energies.component_flash_erase_nj,
  ]);
}
