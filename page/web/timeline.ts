/**
 * The program over its time: how long each call took above, what the flash did below, and between
 * them the kernel's threads at work. A call can be pointed at.
 */

import { type Palette, palette, sized } from "./canvas";
import { above, type Scale } from "./play";
import type { Answer } from "./types";
import { time as inWords } from "./words";

const LEFT = 52;
const HISTOGRAM = 76;
const CALLS = 132;
const THREADS = 9;
const FLASH = 62;
const GAP = 10;
const NARROW = 560;
const SYNCS = new Set(["fsync", "fdatasync", "sync", "syncfs", "sync_range", "msync"]);
const READS = new Set(["read", "readdir", "stat", "touch", "readlink", "getxattr", "listxattr"]);
const WRITES = new Set(["write", "store", "data", "copy", "send", "truncate", "fallocate"]);
const KINDS = ["read", "program", "erase"];

/** Whether a row is a call of the program: to sleep and to work are none. */
export function isCall(op: string | undefined): boolean {
  return op !== "pause" && op !== "compute" && op !== "wait" && op !== "spawn";
}

/** Which colour a call has. */
export function classOf(op: string): "read" | "program" | "sync" | "other" {
  if (SYNCS.has(op)) return "sync";
  if (READS.has(op)) return "read";
  return WRITES.has(op) ? "program" : "other";
}

export class Timeline {
  private colours: Palette = palette();
  private context: CanvasRenderingContext2D | null = null;
  private picture: HTMLCanvasElement | null = null;
  private width = 0;
  private height = 0;
  private plot = 0;
  private low = 1e3;
  private high = 1e6;
  private readonly threads: number[];
  private place = 0;
  selected = -1;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly answer: Answer,
    private scale: Scale,
  ) {
    const seen = new Set<number>();
    for (const task of answer.columns.flash_task) if (task > 0) seen.add(task);
    this.threads = [...seen].sort((one, two) => one - two);
    this.layOut();
  }

  rescale(scale: Scale): void {
    this.scale = scale;
    this.layOut();
  }

  layOut(): void {
    this.colours = palette();
    const rows = this.threads.length;
    this.height = 18 + CALLS + GAP + rows * (THREADS + 3) + (rows ? GAP : 0) + FLASH + 20;
    const { context, width } = sized(this.canvas, this.height);
    this.context = context;
    this.width = width;
    // A window that is being resized may be narrower than the axis for a moment.
    this.plot = Math.max(1, width - LEFT - (width > NARROW ? HISTOGRAM + 12 : 6));
    const picture = document.createElement("canvas");
    picture.width = this.canvas.width;
    picture.height = this.canvas.height;
    const drawing = picture.getContext("2d");
    if (!drawing) return;
    drawing.setTransform(context.getTransform());
    this.picture = picture;
    this.drawPicture(drawing);
    this.draw(this.place);
  }

  private x(time: number): number {
    return LEFT + this.scale.place(time) * this.plot;
  }

  private y(latency: number): number {
    const share = Math.log(Math.max(latency, this.low) / this.low) / Math.log(this.high / this.low);
    return 18 + CALLS - Math.min(1, share) * (CALLS - 6);
  }

  private drawPicture(context: CanvasRenderingContext2D): void {
    context.font = "11px system-ui, sans-serif";
    this.range();
    this.drawAxes(context);
    this.drawCalls(context);
    let top = 18 + CALLS + GAP;
    for (const task of this.threads) {
      this.drawThread(context, task, top);
      top += THREADS + 3;
    }
    if (this.threads.length) top += GAP;
    this.drawFlash(context, top);
    if (this.width > NARROW) this.drawDistribution(context);
  }

  /** The decades that latencies lie in. */
  private range(): void {
    const { request_latency, request_op } = this.answer.columns;
    let least = Number.POSITIVE_INFINITY;
    let most = 0;
    for (let at = 0; at < request_latency.length; at += 1) {
      if (!isCall(this.answer.op_names[request_op[at] as number])) continue;
      const latency = request_latency[at] as number;
      if (latency <= 0) continue;
      least = Math.min(least, latency);
      most = Math.max(most, latency);
    }
    if (most === 0) [least, most] = [1e3, 1e6];
    this.low = 10 ** Math.floor(Math.log10(least));
    this.high = 10 ** Math.ceil(Math.log10(most * 1.0001));
    if (this.high <= this.low) this.high = this.low * 10;
  }

  private drawAxes(context: CanvasRenderingContext2D): void {
    const { colours } = this;
    context.fillStyle = colours.muted as string;
    context.strokeStyle = colours.line as string;
    context.lineWidth = 1;
    context.textAlign = "right";
    const decades = Math.round(Math.log10(this.high / this.low));
    const every = Math.ceil(decades / 5);
    for (let decade = 0; decade <= decades; decade += every) {
      const value = this.low * 10 ** decade;
      const y = Math.round(this.y(value)) + 0.5;
      context.fillText(short(value), LEFT - 6, y + 4);
      context.beginPath();
      context.moveTo(LEFT, y);
      context.lineTo(LEFT + this.plot, y);
      context.stroke();
    }
    context.textAlign = "left";
    context.fillText("how long each call took", LEFT, 11);
  }

  /** A bar from the bottom for each pixel: the longest call that began there. */
  private drawCalls(context: CanvasRenderingContext2D): void {
    const { request_start, request_latency, request_op } = this.answer.columns;
    const wide = this.plot / Math.max(1, request_start.length) > 4 ? 2 : 1;
    const longest = new Float64Array(Math.ceil(this.plot) + 1);
    const which = new Int32Array(longest.length).fill(-1);
    for (let at = 0; at < request_start.length; at += 1) {
      if (!isCall(this.answer.op_names[request_op[at] as number])) continue;
      const column = Math.round(this.x(request_start[at] as number) - LEFT);
      const latency = request_latency[at] as number;
      if (latency >= (longest[column] ?? 0)) {
        longest[column] = latency;
        which[column] = at;
      }
    }
    for (let column = 0; column < longest.length; column += 1) {
      const at = which[column] as number;
      if (at < 0) continue;
      const name = this.answer.op_names[request_op[at] as number] ?? "";
      const y = this.y(longest[column] as number);
      context.fillStyle = this.colours[classOf(name)] as string;
      context.globalAlpha = 0.45;
      context.fillRect(LEFT + column, y, wide, 18 + CALLS - y);
      context.globalAlpha = 1;
      context.fillRect(LEFT + column - 0.5, y - 1.5, wide + 1.5, 3);
    }
  }

  private drawThread(context: CanvasRenderingContext2D, task: number, top: number): void {
    const { flash_start, flash_task } = this.answer.columns;
    context.fillStyle = this.colours.empty as string;
    context.fillRect(LEFT, top, this.plot, THREADS);
    context.fillStyle = this.colours.collect as string;
    let last = -1;
    for (let op = 0; op < flash_task.length; op += 1) {
      if (flash_task[op] !== task) continue;
      const x = Math.round(this.x(flash_start[op] as number));
      if (x === last) continue;
      last = x;
      context.fillRect(x, top, 1.5, THREADS);
    }
    context.fillStyle = this.colours.muted as string;
    context.textAlign = "right";
    context.font = "9px system-ui, sans-serif";
    context.fillText(threadName(this.answer.task_names[task] ?? ""), LEFT - 4, top + 8);
    context.font = "11px system-ui, sans-serif";
  }

  private drawFlash(context: CanvasRenderingContext2D, top: number): void {
    const { flash_start, flash_kind } = this.answer.columns;
    const bars = Math.max(1, Math.floor(this.plot / 2));
    const counts = KINDS.map(() => new Uint32Array(bars + 1));
    for (let op = 0; op < flash_kind.length; op += 1) {
      const bar = Math.floor(this.scale.place(flash_start[op] as number) * bars);
      const of = counts[flash_kind[op] as number] as Uint32Array;
      of[bar] = (of[bar] as number) + 1;
    }
    let most = 1;
    for (let bar = 0; bar < bars; bar += 1) {
      most = Math.max(
        most,
        counts.reduce((sum, of) => sum + (of[bar] as number), 0),
      );
    }
    for (let bar = 0; bar < bars; bar += 1) {
      let y = top + FLASH;
      counts.forEach((of, kind) => {
        const height = ((of[bar] as number) / most) * FLASH;
        if (height === 0) return;
        const shown = kind === 2 ? Math.max(2, height) : height;
        context.fillStyle = this.colours[KINDS[kind] as string] as string;
        context.fillRect(LEFT + bar * 2, y - shown, 1.6, shown);
        y -= shown;
      });
    }
    context.strokeStyle = this.colours.line as string;
    context.beginPath();
    context.moveTo(LEFT, top + FLASH + 0.5);
    context.lineTo(LEFT + this.plot, top + FLASH + 0.5);
    context.stroke();
    context.fillStyle = this.colours.muted as string;
    context.textAlign = "right";
    context.fillText("flash", LEFT - 6, top + 12);
    context.textAlign = "left";
    context.fillText("0", LEFT, top + FLASH + 15);
    context.textAlign = "right";
    const end = this.scale.squeezed
      ? `${inWords(this.scale.end)}, idle time squeezed`
      : inWords(this.scale.end);
    context.fillText(end, LEFT + this.plot, top + FLASH + 15);
  }

  /** Of all calls how many took how long, beside their axis. */
  private drawDistribution(context: CanvasRenderingContext2D): void {
    const { request_latency, request_op } = this.answer.columns;
    const bins = 26;
    const counts = new Uint32Array(bins);
    const span = Math.log(this.high / this.low);
    for (let at = 0; at < request_latency.length; at += 1) {
      if (!isCall(this.answer.op_names[request_op[at] as number])) continue;
      const latency = Math.max(request_latency[at] as number, this.low);
      const bin = Math.min(bins - 1, Math.floor((Math.log(latency / this.low) / span) * bins));
      counts[bin] = (counts[bin] as number) + 1;
    }
    const most = counts.reduce((sum, value) => Math.max(sum, value), 1);
    const left = LEFT + this.plot + 12;
    const high = (CALLS - 6) / bins;
    context.fillStyle = this.colours.accent as string;
    counts.forEach((value, bin) => {
      const wide = value === 0 ? 0 : Math.max(1.5, Math.sqrt(value / most) * HISTOGRAM);
      context.fillRect(left, 18 + CALLS - (bin + 1) * high + 0.5, wide, high - 1);
    });
    context.fillStyle = this.colours.muted as string;
    context.textAlign = "left";
    context.fillText("how many", left, 11);
  }

  /** The picture, where one is in it, and the call that is pointed at. */
  draw(place: number): void {
    this.place = place;
    const { context, picture } = this;
    if (!context || !picture) return;
    context.clearRect(0, 0, this.width, this.height);
    context.drawImage(picture, 0, 0, this.width, this.height);
    const bottom = this.height - 20;
    if (this.selected >= 0) {
      const { request_start, request_latency } = this.answer.columns;
      const from = this.x(request_start[this.selected] as number);
      const to = this.x(
        (request_start[this.selected] as number) + (request_latency[this.selected] as number),
      );
      context.globalAlpha = 0.22;
      context.fillStyle = this.colours.ink as string;
      context.fillRect(from - 1, 14, Math.max(2.5, to - from + 1), bottom - 14);
      context.globalAlpha = 1;
    }
    const x = LEFT + place * this.plot;
    context.strokeStyle = this.colours.ink as string;
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(x, 14);
    context.lineTo(x, bottom);
    context.stroke();
    context.fillStyle = this.colours.ink as string;
    context.beginPath();
    context.arc(x, 14, 3.5, 0, Math.PI * 2);
    context.fill();
  }

  /** The place of a point of the canvas. */
  placeAt(x: number): number {
    return Math.min(1, Math.max(0, (x - LEFT) / this.plot));
  }

  /** The call nearest to a place; the longest of those that are as near. */
  requestAt(place: number): number {
    const { request_start, request_latency, request_op } = this.answer.columns;
    if (request_start.length === 0) return -1;
    const reach = 2.5 / this.plot;
    const from = above(request_start, this.scale.time(Math.max(0, place - reach)));
    const to = above(request_start, this.scale.time(Math.min(1, place + reach)));
    let best = -1;
    for (let at = Math.max(0, from - 1); at < Math.max(to, from); at += 1) {
      if (!isCall(this.answer.op_names[request_op[at] as number])) continue;
      const longer =
        best < 0 || (request_latency[at] as number) > (request_latency[best] as number);
      if (longer) best = at;
    }
    return best < 0 ? Math.min(request_start.length - 1, Math.max(0, from - 1)) : best;
  }
}

function short(ns: number): string {
  if (ns >= 1e9) return `${ns / 1e9} s`;
  if (ns >= 1e6) return `${ns / 1e6} ms`;
  return ns >= 1e3 ? `${ns / 1e3} µs` : `${ns} ns`;
}

/** A thread's name, as short as the margin is wide. */
function threadName(name: string): string {
  const names: Record<string, string> = {
    background: "flusher",
    ubi_bgt0d: "ubi_bgt",
    ubifs_bgt0_0: "ubifs_bgt",
    jffs2_gcd: "jffs2_gcd",
    "yaffs-bg-0": "yaffs-bg",
  };
  return names[name] ?? name;
}
