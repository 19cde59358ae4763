/** The simulator in its own thread: takes a request, gives an answer, one at a time. */

import type { Answer, Columns, Reply, Task } from "./types";

interface Exports {
  memory: WebAssembly.Memory;
  reserve(bytes: number): number;
  run(): void;
  answer(): number;
  answer_bytes(): number;
}

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
  const at = exports.answer();
  const bytes = exports.answer_bytes();
  const length = Number(new DataView(exports.memory.buffer, at, 8).getBigUint64(0, true));
  const json = JSON.parse(decoded(at + 8, length)) as Record<string, unknown>;
  const data = at + Math.ceil((8 + length) / 8) * 8;
  const index = json.columns as Record<string, [keyof typeof ARRAYS, number, number]>;
  const columns: Record<string, ArrayLike<number>> = {};
  for (const [name, [kind, offset, count]] of Object.entries(index)) {
    const array = ARRAYS[kind];
    const size = array.BYTES_PER_ELEMENT;
    if (data + offset + count * size > at + bytes) throw new Error("an answer that is cut short");
    columns[name] = new array(
      exports.memory.buffer.slice(data + offset, data + offset + count * size),
    );
  }
  return { json, columns: columns as unknown as Columns };
}

async function run(id: number, request: ArrayBuffer): Promise<void> {
  running = id;
  try {
    if (!compiled) throw new Error("the simulator has not been loaded");
    wasm ??= await instantiate(compiled);
    const at = wasm.reserve(request.byteLength);
    new Uint8Array(wasm.memory.buffer, at, request.byteLength).set(new Uint8Array(request));
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
