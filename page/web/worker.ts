/** The simulator in its own thread: takes a request, gives an answer, one at a time. */

import type { Answer, Columns, Reply, Task } from "./types";

interface Exports {
  memory: WebAssembly.Memory;
  reserve(bytes: number): number;
  run(): void;
  answer(): number;
  answer_bytes(): number;
}

type Detachable = ArrayBuffer & { transfer?(bytes: number): ArrayBuffer };

const ARRAYS = { f64: Float64Array, u32: Uint32Array, i32: Int32Array, u8: Uint8Array };
/** A module's memory never shrinks: one that has grown beyond this is given up with its worker. */
const LARGE_BYTES = 96 << 20;
const scope = self as unknown as {
  postMessage(reply: Reply, transfer?: Transferable[]): void;
  onmessage: ((event: MessageEvent<Task>) => void) | null;
};
let wasm: Exports | null = null;
let compiled: WebAssembly.Module | null = null;
let running = 0;
let bug = "";

function say(reply: Reply, transfer: Transferable[] = []): void {
  scope.postMessage(reply, transfer);
}

async function instantiate(module: WebAssembly.Module): Promise<Exports> {
  const instance = await WebAssembly.instantiate(module, {
    page: {
      progress: (operations: number) => say({ kind: "progress", id: running, operations }),
      panicked: (text: number, bytes: number) => {
        bug = decoded(text, bytes);
      },
    },
  });
  return instance.exports as unknown as Exports;
}

function decoded(at: number, bytes: number): string {
  if (!wasm) return "";
  return new TextDecoder().decode(new Uint8Array(wasm.memory.buffer, at, bytes));
}

/** The answer of page/src/answer.rs; its columns are copied out of the simulator's memory. */
function receive(exports: Exports): { json: Record<string, unknown>; columns: Columns } {
  const { buffer } = exports.memory;
  const json = JSON.parse(decoded(exports.answer(), exports.answer_bytes()));
  const index = json.columns as Record<string, [keyof typeof ARRAYS, number, number]>;
  const columns: Record<string, ArrayLike<number>> = {};
  for (const [name, [kind, address, count]] of Object.entries(index)) {
    const array = ARRAYS[kind];
    columns[name] = new array(
      buffer.slice(address, address + count * array.BYTES_PER_ELEMENT) as ArrayBuffer,
    );
  }
  return { json, columns: columns as unknown as Columns };
}

/** Copies a request into the simulator's memory, and frees it where the browser can. */
function handOver(exports: Exports, request: Detachable): void {
  const at = exports.reserve(request.byteLength);
  new Uint8Array(exports.memory.buffer, at, request.byteLength).set(new Uint8Array(request));
  request.transfer?.(0);
}

async function run(id: number, request: ArrayBuffer): Promise<void> {
  running = id;
  try {
    if (!compiled) throw new Error("the simulator has not been loaded");
    wasm ??= await instantiate(compiled);
    handOver(wasm, request);
    wasm.run();
    const { json, columns } = receive(wasm);
    const isLarge = wasm.memory.buffer.byteLength > LARGE_BYTES;
    if (typeof json.error === "string") {
      const notModelled = (json.not_modelled as string | null) ?? null;
      say({ kind: "refused", id, message: json.error, notModelled });
      return;
    }
    const answer = { ...json, columns } as unknown as Answer;
    const buffers = Object.values(columns).map((column) => column.buffer as ArrayBuffer);
    say({ kind: "answer", id, answer, isLarge }, buffers);
  } catch (error) {
    wasm = null; // a module that has trapped is in no known state
    const message = bug || (error instanceof Error ? error.message : String(error));
    bug = "";
    say({ kind: "broken", id, message });
  }
}

scope.onmessage = (event) => {
  const task = event.data;
  if (task.kind === "module") {
    compiled = task.module;
    say({ kind: "ready" });
  } else {
    void run(task.id, task.request);
  }
};
