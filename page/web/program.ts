/** Programs: those of the page, and what a reader drops onto it. */

import type { World } from "./world";

/**
 * Texts that differ in some fields of their lines, as
 * python/flashbed/plan/workloads/playground_program.py has them.
 */
export interface Variants {
  /** Every text by itself, where their lines cannot be laid beside each other. */
  whole?: string[];
  lines?: string;
  values?: string[];
}

/** A recorded program, with operations for every file system and compressor. */
export interface Program {
  name: string;
  title: string;
  variants: Record<string, number>;
  prepare: Variants;
  body: Variants;
}

/** A program that was dropped onto the page: operations as they are, or a recorded program. */
export interface Dropped {
  name: string;
  text: string | null;
  program: Program | null;
  /** The programs of a product; `program` is the one that is shown. */
  mix: Part[];
  /** What the page shows it on, written as an address; null leaves what is chosen. */
  opens: string | null;
  /** The board of that, which may be none of the page's. */
  board: OwnBoard | null;
}

/** A board's profile that came with a program. */
export interface OwnBoard {
  name: string;
  tables: World["boards"][string];
}

/** A program of a product, and how often it runs; null if it was not said. */
export interface Part {
  program: Program;
  runsPerDay: number | null;
}

/** What `flashbed playground` writes. */
type Made = Program & {
  "flashbed-program"?: unknown;
  "flashbed-mix"?: unknown;
  parts?: Part[];
  opens?: string;
  board?: OwnBoard;
};

const FORMAT = 1;
const BYTES_MAX = 256 << 20;
const GZIP = [0x1f, 0x8b];

/** A dropped file as a program. Throws one line for what is none. */
export async function readDropped(name: string, bytes: Uint8Array): Promise<Dropped> {
  if (bytes[0] === GZIP[0] && bytes[1] === GZIP[1]) return readProgram(name, bytes);
  const text = readOperations(name, bytes);
  return { name, text, program: null, mix: [], opens: null, board: null };
}

/** What `flashbed playground` makes of a recording. */
async function readProgram(name: string, packed: Uint8Array): Promise<Dropped> {
  const none = new Error(`${name} is no program: flashbed playground did not make it`);
  let made: Made;
  try {
    made = JSON.parse(await unpacked(name, packed));
  } catch (error) {
    throw error instanceof RangeError ? error : none;
  }
  if (made?.["flashbed-mix"] === FORMAT && areParts(made.parts)) {
    const program = made.parts[0]?.program as Program;
    return { name: program.title, text: null, program, mix: made.parts, ...shownOn(made) };
  }
  if (made?.["flashbed-program"] !== FORMAT || !isProgram(made)) throw none;
  return { name: made.title, text: null, program: made, mix: [], ...shownOn(made) };
}

function shownOn(made: Made): { opens: string | null; board: OwnBoard | null } {
  const { opens, board } = made;
  const isBoard = typeof board?.name === "string" && typeof board.tables?.title === "string";
  return {
    opens: typeof opens === "string" ? opens : null,
    board: isBoard && board.tables.usual && board.tables.priced ? board : null,
  };
}

function areParts(given: Part[] | undefined): given is Part[] {
  const isPart = ({ program, runsPerDay: often }: Part) =>
    isProgram(program) && (often === null || (Number.isFinite(often) && often > 0));
  return Array.isArray(given) && given.length > 0 && given.every(isPart);
}

async function unpacked(name: string, packed: Uint8Array): Promise<string> {
  const stream = new Blob([packed as BlobPart]).stream();
  const reader = stream.pipeThrough(new DecompressionStream("gzip")).getReader();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  for (let bytes = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.length;
    if (bytes > BYTES_MAX) throw new RangeError(`${name} is larger than 256 MiB unpacked`);
    text += decoder.decode(value, { stream: true });
  }
}

function isProgram(given: Program): boolean {
  const isText = (one: unknown) => typeof one === "string";
  const areTexts = (many: unknown) => Array.isArray(many) && many.every(isText);
  const areVariants = (of: Variants | undefined) =>
    of && (areTexts(of.whole) || (isText(of.lines) && areTexts(of.values)));
  return Boolean(
    given &&
      isText(given.title) &&
      given.title.length < 200 &&
      given.variants &&
      Object.values(given.variants).every((number) => Number.isInteger(number)) &&
      areVariants(given.prepare) &&
      areVariants(given.body),
  );
}

/** flashbed-ops text, whose preparation ends with the line `prepared`: the simulator parts it. */
function readOperations(name: string, bytes: Uint8Array): string {
  const begin = new TextDecoder("latin1").decode(bytes.subarray(0, 14));
  if (begin.startsWith("PAR1")) {
    const made = name.replace(/\.[^.]*$/, "");
    throw new Error(
      `${name} is a recording: run flashbed playground ${name}, and drop ${made}.play`,
    );
  }
  if (!begin.startsWith("flashbed-ops ")) {
    throw new Error(`${name} is no program: its first line is not flashbed-ops 1 or 2`);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Error(`${name} is no program: it has bytes that are not text`);
  }
}
