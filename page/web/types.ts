/** What passes between the page, its worker and the simulator. */

/** A way to fill the flash: one of the recorded programs, a micro-benchmark, or a dropped file. */
export type ProgramName = string;

/** A name of boards/parts/file_systems.toml. */
export type FileSystem = string;

/** Everything that a reader can choose; the address of the page has the same. */
export interface Config {
  program: ProgramName;
  /** Whether a recorded program keeps what it did and waited between its calls. */
  think: boolean;
  fs: FileSystem;
  bulkRead: boolean;
  kernel: string;
  /** KiB; -1 is the window that the kernel gives the mount. */
  readAhead: number;
  compressor: string;
  board: string;
  /** Keys of the profile's `[chip]` that are other than there. */
  chip: Partial<Record<ChipKey, number>>;
  /** Blocks of the partition; 0 is the profile's. */
  blocks: number;
  /** Blocks that are bad from the factory. */
  badBlocks: number;
  /** Erases of every block before. */
  worn: number;
  /** Of the micro-benchmarks. */
  requests: number;
  requestBytes: number;
  fileKib: number;
  order: "sequential" | "random";
}

export type ChipKey =
  | "page_bytes"
  | "oob_bytes"
  | "pages_per_block"
  | "read_array_ns"
  | "program_array_ns"
  | "erase_array_ns"
  | "bus_read_ns"
  | "bus_program_ns"
  | "column_change_ns";

/** A case as the simulator takes it: a header that becomes JSON, and two texts. */
export interface SimRequest {
  header: {
    board: BoardTables;
    kernel: KernelTables;
    fs: string;
    read_ahead_kib: number;
    erases: number[];
    bad_blocks: number[];
    rows_max: number;
    /** `texts`: they follow. `whole`: one text has both. Else the simulator makes them. */
    program: "texts" | "whole" | Record<string, Micro>;
    settle_ns: number;
    energy: { constants: Record<string, unknown>; pattern: string } | null;
    lifetime: { endurance: number | null; runs_per_day: number | null; others: (number | null)[] };
  };
  prepare: string;
  body: string;
}

/** A micro-benchmark. */
export interface Micro {
  pattern: string;
  requests: number;
  request_bytes: number;
  file_bytes: number;
}

export interface BoardTables {
  chip: Record<ChipKey | "blocks", number> & { transfer: string };
  ecc: { kind: string; step_bytes: number; strength_bits: number };
  partition: { first_block: number; blocks: number };
  memory: { free_kib: number };
  software: Record<string, unknown>;
}

export interface KernelTables {
  kernel: Record<string, unknown>;
  readahead: Record<string, unknown>;
  jffs2: Record<string, unknown> & { compressors: string[] };
  ubifs: Record<string, unknown> & { compressor: string };
}

export interface Causes {
  data: number;
  metadata: number;
  padding: number;
  collection: number;
  wear_levelling: number;
}

/** The measured columns of the table `cases`, by their names there. */
export interface Counts {
  time_ns: number;
  flash_time_ns: number;
  elapsed_ns: number;
  bytes: number;
  bytes_written: number;
  failed: number;
  flash_reads: number;
  flash_programs: number;
  flash_erases: number;
  causes: Causes;
  cache_hits: number;
  cache_misses: number;
  cache_adds: number;
  erase_count_max: number;
  erase_count_mean_milli: number;
  bad_blocks: number;
  ecc_corrected: number;
  ecc_failed: number;
  fresh_bytes: number | null;
  free_bytes: number | null;
  fresh_pages: number;
  pages: number;
}

export interface Flush {
  flash_reads: number;
  flash_programs: number;
  flash_erases: number;
  causes: Causes;
}

/** Whole numbers of a column: floats where one of them does not fit 32 bits. */
export type Numbers = Int32Array | Float64Array;

/** The rows of a case, a typed array a column. */
export interface Columns {
  request_start: Float64Array;
  request_latency: Numbers;
  request_flash: Numbers;
  /** In calls into the driver, the chip's time included. */
  request_driver: Numbers;
  /** In calls into the file system, all below it included. */
  request_fs: Numbers;
  /** UBI's own time. */
  request_ubi: Numbers;
  request_offset: Numbers;
  request_length: Numbers;
  request_file: Int32Array;
  request_op: Uint8Array;
  flash_start: Float64Array;
  flash_page: Uint32Array;
  flash_column: Uint32Array;
  flash_kind: Uint8Array;
  flash_task: Uint8Array;
  live_at: Float64Array;
  live: Uint8Array;
  programmed: Uint8Array;
  wear_erases: Uint32Array;
  wear_measured: Uint32Array;
  wear_flush: Uint32Array;
}

/** How long the flash lasts, of page/src/lifetime.rs; null is unknown. */
export interface Lifetime {
  /** Whether erasing kept up with programming. */
  steady: boolean;
  /** In years of rounds without a break; null where nothing wears, or no endurance is known. */
  alone: {
    /** Every block is erased as often as every other; an upper bound where not steady. */
    levelled: number | null;
    /** The most erased block keeps its rate; null where not steady, or after few erases. */
    as_seen: number | null;
  } | null;
  /** Page programs of a round. */
  programs_per_run: number;
  runs_per_day: number | null;
  erases_per_day: number | null;
  /** Years under this program and the others of the request. */
  together_years: number | null;
}

export interface Answer {
  counts: Counts;
  /** By the columns of `cases`, in digits. */
  energies: Record<string, string | null>;
  lifetime: Lifetime;
  flush: Flush | null;
  unpriced: string | null;
  files: string[];
  op_names: string[];
  task_names: string[];
  requests_left_out: number;
  flash_left_out: number;
  columns: Columns;
}

/** What the worker says. */
export type Reply =
  | { kind: "ready" }
  | { kind: "progress"; id: number; operations: number }
  | { kind: "answer"; id: number; answer: Answer; isLarge: boolean }
  | { kind: "refused"; id: number; message: string; notModelled: string | null }
  | { kind: "broken"; id: number; message: string };

/** What the worker is told. */
export type Task =
  | { kind: "module"; module: WebAssembly.Module }
  | { kind: "run"; id: number; request: ArrayBuffer };
