/**
 * Workers that simulate. A lane runs the newest request that it was given: one that is still
 * running is ended if it has taken long, and otherwise let finish, which is faster than a new
 * worker.
 */

import type { Answer, Reply, SimRequest, Task } from "./types";

/** A run that has taken this long is ended when another is asked for. */
const PATIENCE_MS = 120;

export type Outcome =
  | { kind: "answer"; answer: Answer; ms: number }
  | { kind: "refused"; message: string; notModelled: string | null }
  | { kind: "broken"; message: string };

/** Three lengths, then JSON, preparation and body, as page/src/request.rs reads them. */
function packed(request: SimRequest): ArrayBuffer {
  const texts = [JSON.stringify(request.header), request.prepare, request.body];
  // A letter is a byte in nearly every text, so that nothing is copied twice.
  const letters = texts.reduce((sum, text) => sum + text.length, 12);
  return packedInto(texts, letters) ?? (packedInto(texts, letters * 3) as ArrayBuffer);
}

/** The texts in a buffer of so many bytes; null if they do not fit. */
function packedInto(texts: string[], size: number): ArrayBuffer | null {
  const encoder = new TextEncoder();
  const buffer = new ArrayBuffer(size);
  const view = new DataView(buffer);
  let next = 12;
  for (const [index, text] of texts.entries()) {
    const { read, written } = encoder.encodeInto(text, new Uint8Array(buffer, next));
    if (read < text.length) return null;
    view.setUint32(index * 4, written, true);
    next += written;
  }
  return buffer;
}

interface Wanted {
  id: number;
  request: () => SimRequest;
  done: (outcome: Outcome) => void;
  progress: (operations: number) => void;
}

let url = "";
let compiled: WebAssembly.Module | null = null;

/** Hands the simulator and the text of its worker over; once, before any lane is made. */
export async function load(wasm: BufferSource, workerText: string): Promise<void> {
  compiled = await WebAssembly.compile(wasm);
  url = URL.createObjectURL(new Blob([workerText], { type: "text/javascript" }));
}

export class Lane {
  private worker: Worker | null = null;
  private running: Wanted | null = null;
  private waiting: Wanted | null = null;
  private began = 0;
  private impatient = 0;
  private ids = 0;

  /** Whether a run is going on. */
  get busy(): boolean {
    return this.running !== null;
  }

  /** Runs a request instead of whatever was asked for before. */
  run(
    request: () => SimRequest,
    done: (outcome: Outcome) => void,
    progress: (operations: number) => void = () => undefined,
  ): void {
    this.ids += 1;
    this.waiting = { id: this.ids, request, done, progress };
    if (!this.running) {
      this.next();
      return;
    }
    const left = PATIENCE_MS - (performance.now() - this.began);
    clearTimeout(this.impatient);
    if (left <= 0) this.end();
    else this.impatient = window.setTimeout(() => this.end(), left);
  }

  /** Ends what is running and forgets what is waiting. */
  cancel(): void {
    this.waiting = null;
    if (this.running) this.end();
  }

  private end(): void {
    this.worker?.terminate();
    this.worker = null;
    this.running = null;
    this.next();
  }

  private next(): void {
    clearTimeout(this.impatient);
    const wanted = this.waiting;
    this.waiting = null;
    this.running = wanted;
    if (!wanted) return;
    this.began = performance.now();
    let request: SimRequest;
    try {
      request = wanted.request();
    } catch (error) {
      this.running = null;
      const message = error instanceof Error ? error.message : String(error);
      wanted.done({ kind: "refused", message, notModelled: null });
      return;
    }
    this.worker ??= this.begin();
    const bytes = packed(request);
    this.worker.postMessage({ kind: "run", id: wanted.id, request: bytes } satisfies Task, [bytes]);
  }

  private begin(): Worker {
    const worker = new Worker(url);
    worker.onmessage = (event: MessageEvent<Reply>) => this.hear(event.data);
    worker.onerror = (event) => {
      const wanted = this.running;
      this.end();
      wanted?.done({ kind: "broken", message: event.message || "the worker ended" });
    };
    worker.postMessage({ kind: "module", module: compiled } as Task);
    return worker;
  }

  private hear(reply: Reply): void {
    const wanted = this.running;
    if (reply.kind === "ready" || !wanted || reply.id !== wanted.id) return;
    if (reply.kind === "progress") {
      wanted.progress(reply.operations);
      return;
    }
    this.running = null;
    if (reply.kind === "answer" && reply.isLarge) {
      this.worker?.terminate();
      this.worker = null;
    }
    const outdated = this.waiting !== null;
    this.next();
    if (outdated) return;
    if (reply.kind === "answer") {
      wanted.done({ kind: "answer", answer: reply.answer, ms: performance.now() - this.began });
    } else if (reply.kind === "refused") {
      wanted.done({ kind: "refused", message: reply.message, notModelled: reply.notModelled });
    } else {
      wanted.done({ kind: "broken", message: reply.message });
    }
  }
}
