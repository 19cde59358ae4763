/**
 * The chip: every block of the partition as a cell that fills, holds what is of use and what is
 * not, is erased and grows warm. What was programmed is followed operation by operation; what of it
 * is of use comes from looks that the simulator took while the program ran.
 */

import { type Palette, palette, sized } from "./canvas";
import { above } from "./play";
import type { Answer, BoardTables } from "./types";

const READ = 0;
const PROGRAM = 1;
const ERASE = 2;
/** Operations between two states that are kept, from which any other is made. */
const KEPT_EVERY = 8192;
const GLOW_FADES = 0.86;
const GLOW_LEAST = 0.04;
/** Operations whose glow is shown when one has jumped. */
const GLOW_AFTER_JUMP = 40;

export interface CellFacts {
  block: number;
  pages: number;
  ofPages: number;
  liveShare: number | null;
  erases: number;
}

interface Kept {
  pages: Uint16Array;
  erases: Uint16Array;
}

export class ChipView {
  private readonly blocks: number;
  private readonly first: number;
  private readonly pagesPerBlock: number;
  private readonly pageBytes: number;
  private readonly pages: Uint16Array;
  private readonly erases: Uint16Array;
  private readonly glow: Float32Array;
  private readonly glowKind: Uint8Array;
  private readonly dirty: Uint8Array;
  private readonly kept: Kept[] = [];
  private readonly erasesMost: number;
  private colours: Palette = palette();
  private next = 0;
  private look = -1;
  private columns = 1;
  private cell = 10;
  private gap = 1;
  private left = 0;
  private context: CanvasRenderingContext2D | null = null;
  selected = -1;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly answer: Answer,
    board: BoardTables,
  ) {
    this.blocks = board.partition.blocks;
    this.first = board.partition.first_block;
    this.pagesPerBlock = board.chip.pages_per_block;
    this.pageBytes = board.chip.page_bytes;
    this.pages = new Uint16Array(this.blocks);
    this.erases = new Uint16Array(this.blocks);
    this.glow = new Float32Array(this.blocks);
    this.glowKind = new Uint8Array(this.blocks);
    this.dirty = new Uint8Array(this.blocks);
    const { programmed } = answer.columns;
    for (let block = 0; block < this.blocks; block += 1) {
      this.pages[block] = Math.floor(((programmed[block] ?? 0) * this.pagesPerBlock) / 255);
    }
    const count = answer.columns.flash_kind.length;
    for (let op = 0; op < count; op += 1) {
      if (op % KEPT_EVERY === 0) this.keep();
      this.apply(op);
    }
    if (count % KEPT_EVERY === 0) this.keep();
    this.erasesMost = this.erases.reduce((most, erases) => Math.max(most, erases), 1);
    this.layOut();
    this.jumpTo(0);
  }

  private keep(): void {
    this.kept.push({ pages: this.pages.slice(), erases: this.erases.slice() });
  }

  /** Lays the cells out for the width that there is. */
  layOut(): void {
    this.colours = palette();
    const width = this.canvas.parentElement?.clientWidth ?? 300;
    const wanted = Math.sqrt((width * Math.max(150, width * 0.3)) / this.blocks);
    const step = Math.max(5, Math.min(42, Math.floor(wanted)));
    this.gap = step >= 9 ? 2 : 1;
    this.cell = step - this.gap;
    this.columns = Math.max(1, Math.floor((width + this.gap) / step));
    const rows = Math.ceil(this.blocks / this.columns);
    const { context } = sized(this.canvas, rows * step - this.gap + 4);
    this.context = context;
    this.left = Math.floor((width - this.columns * step + this.gap) / 2);
    context.clearRect(0, 0, width, rows * step + 4);
    this.dirty.fill(1);
    this.draw();
  }

  private apply(op: number): number {
    const { flash_page, flash_column, flash_kind } = this.answer.columns;
    const page = flash_page[op] as number;
    const block = Math.floor(page / this.pagesPerBlock) - this.first;
    if (block < 0 || block >= this.blocks) return -1;
    const kind = flash_kind[op] as number;
    // What goes into the spare area alone (a clean marker) leaves the page to be programmed.
    if (kind === PROGRAM && (flash_column[op] as number) < this.pageBytes) {
      const end = (page % this.pagesPerBlock) + 1;
      if (end > (this.pages[block] as number)) this.pages[block] = end;
    } else if (kind === ERASE) {
      this.pages[block] = 0;
      this.erases[block] = (this.erases[block] as number) + 1;
    }
    return block;
  }

  private play(op: number): void {
    const block = this.apply(op);
    if (block < 0) return;
    const kind = this.answer.columns.flash_kind[op] as number;
    if ((this.glow[block] as number) < 0.5 || kind >= (this.glowKind[block] as number)) {
      this.glowKind[block] = kind;
    }
    this.glow[block] = 1;
    this.dirty[block] = 1;
  }

  /** Goes to a time of the program; returns how many operations are over. */
  moveTo(time: number, jumped: boolean): number {
    const target = above(this.answer.columns.flash_start, time);
    if (jumped || target < this.next) this.jumpTo(target);
    else {
      for (let block = 0; block < this.blocks; block += 1) {
        const glow = this.glow[block] as number;
        if (glow === 0) continue;
        this.glow[block] = glow < GLOW_LEAST ? 0 : glow * GLOW_FADES;
        this.dirty[block] = 1;
      }
      while (this.next < target) {
        this.play(this.next);
        this.next += 1;
      }
    }
    this.lookAt(time);
    this.draw();
    return target;
  }

  private jumpTo(target: number): void {
    const nearest = Math.min(Math.floor(target / KEPT_EVERY), this.kept.length - 1);
    const kept = this.kept[nearest] as Kept;
    this.pages.set(kept.pages);
    this.erases.set(kept.erases);
    this.glow.fill(0);
    this.glowKind.fill(0);
    for (let op = nearest * KEPT_EVERY; op < target; op += 1) {
      if (target - op <= GLOW_AFTER_JUMP) this.play(op);
      else this.apply(op);
    }
    this.next = target;
    this.look = -1;
    this.dirty.fill(1);
  }

  /** The look that was taken last before a time. */
  private lookAt(time: number): void {
    const { live_at, live } = this.answer.columns;
    const look = Math.max(0, above(live_at, time) - 1);
    if (look === this.look || live_at.length === 0) return;
    const before = this.look;
    this.look = look;
    for (let block = 0; block < this.blocks; block += 1) {
      const old = before < 0 ? -1 : live[before * this.blocks + block];
      if (live[look * this.blocks + block] !== old) this.dirty[block] = 1;
    }
  }

  /** What the last look saw, and all that was programmed after it. */
  private liveShare(block: number): number | null {
    const { live_at, live, programmed } = this.answer.columns;
    if (live_at.length === 0) return null;
    const at = Math.max(0, this.look) * this.blocks + block;
    const now = (this.pages[block] as number) / this.pagesPerBlock;
    const since = Math.max(0, now - (programmed[at] ?? 0) / 255);
    return Math.min(now, (live[at] ?? 0) / 255 + since);
  }

  private draw(): void {
    for (let block = 0; block < this.blocks; block += 1) {
      if (!this.dirty[block]) continue;
      this.dirty[block] = 0;
      this.drawCell(block);
    }
  }

  private drawCell(block: number): void {
    const context = this.context;
    if (!context) return;
    const { cell, gap, columns, colours } = this;
    const step = cell + gap;
    const x = this.left + (block % columns) * step;
    const y = 2 + Math.floor(block / columns) * step;
    context.globalAlpha = 1;
    context.clearRect(x - gap / 2, y - gap / 2, step, step);
    context.fillStyle = colours.empty as string;
    context.fillRect(x, y, cell, cell);
    const erases = this.erases[block] as number;
    if (erases > 0) {
      context.globalAlpha = 0.18 + 0.5 * (erases / this.erasesMost);
      context.fillStyle = colours.erase as string;
      context.fillRect(x, y, cell, cell);
      context.globalAlpha = 1;
    }
    const programmed = (this.pages[block] as number) / this.pagesPerBlock;
    if (programmed > 0) {
      const live = this.liveShare(block);
      const used = live ?? programmed;
      const whole = Math.max(1, Math.round(cell * programmed));
      const kept = used > 0 ? Math.max(1, Math.round(cell * used)) : 0;
      context.fillStyle = colours.stale as string;
      context.fillRect(x, y + cell - whole, cell, whole);
      context.fillStyle = colours.live as string;
      context.fillRect(x, y + cell - kept, cell, kept);
    }
    const glow = this.glow[block] as number;
    if (glow > 0) {
      const kind = this.glowKind[block] as number;
      const name = kind === READ ? "read" : kind === PROGRAM ? "program" : "erase";
      context.globalAlpha = Math.min(1, glow * 1.2);
      context.strokeStyle = colours[name] as string;
      // A ring, as in the legend: a filled cell would read as erased often.
      const line = (cell >= 9 ? 2 : 1.2) * (kind === ERASE ? 1.6 : 1);
      context.lineWidth = line;
      context.strokeRect(x + line / 2, y + line / 2, cell - line, cell - line);
      context.globalAlpha = 1;
    }
    if (block === this.selected) {
      context.strokeStyle = colours.ink as string;
      context.lineWidth = 2;
      context.strokeRect(x, y, cell, cell);
    }
  }

  /** The block at a point of the canvas; -1 is none. */
  blockAt(x: number, y: number): number {
    const step = this.cell + this.gap;
    const column = Math.floor((x - this.left) / step);
    const block = Math.floor((y - 2) / step) * this.columns + column;
    return column >= 0 && column < this.columns && block >= 0 && block < this.blocks ? block : -1;
  }

  /** Marks a block, or none. */
  select(block: number): void {
    if (this.selected >= 0) this.dirty[this.selected] = 1;
    this.selected = block;
    if (block >= 0) this.dirty[block] = 1;
    this.draw();
  }

  /** The block that an arrow key leads to. */
  neighbour(key: string): number {
    const steps: Record<string, number> = {
      ArrowLeft: -1,
      ArrowRight: 1,
      ArrowUp: -this.columns,
      ArrowDown: this.columns,
    };
    const block = Math.max(0, this.selected) + (steps[key] ?? 0);
    return Math.min(this.blocks - 1, Math.max(0, block));
  }

  facts(block: number): CellFacts {
    return {
      block: this.first + block,
      pages: this.pages[block] as number,
      ofPages: this.pagesPerBlock,
      liveShare: this.liveShare(block),
      erases: this.erases[block] as number,
    };
  }

  /** Pages that are programmed, and the share of all pages that is of use. */
  sums(): { programmed: number; all: number; live: number | null } {
    let programmed = 0;
    let live = 0;
    for (let block = 0; block < this.blocks; block += 1) {
      const pages = this.pages[block] as number;
      programmed += pages;
      live += this.liveShare(block) ?? 0;
    }
    const known = this.answer.columns.live_at.length > 0;
    return {
      programmed,
      all: this.blocks * this.pagesPerBlock,
      live: known ? live / this.blocks : null,
    };
  }
}
