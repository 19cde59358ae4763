/**
 * Energy above idle, as the answer has it: two conventions that nothing adds up. The arithmetic is
 * common/src/energy.rs, which the package has too.
 */

import type { Answer } from "./types";

/** `[energy]` of a profile, without its sources: common/src/energy.rs reads it. */
export type EnergyTables = Record<string, unknown>;

/** The columns of `cases`, by their names there, in nanojoules; null is unknown. */
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
  ["component_flash_read_nj", "page reads", "read"],
  ["component_flash_program_nj", "page writes", "program"],
  ["component_flash_erase_nj", "erases", "erase"],
  ["component_bus_nj", "bus", "sync"],
];

/** Energies of an answer: their digits as numbers. */
export function energiesOf(answer: Answer): Energies {
  const known = Object.entries(answer.energies).map(([name, nj]) => [
    name,
    nj === null ? null : BigInt(nj),
  ]);
  return Object.fromEntries(known) as Energies;
}

function sum(parts: (bigint | null)[]): bigint | null {
  let all = 0n;
  for (const part of parts) {
    if (part === null) return null;
    all += part;
  }
  return all;
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
