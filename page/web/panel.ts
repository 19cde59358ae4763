/** The panel of everything that can be chosen. */

import { Choice, OWN, Select, Slider, type Stop, Toggle } from "./controls";
import { compresses, fileSystems, titleOf } from "./filesystems";
import type { Dropped } from "./program";
import { isMicro } from "./state";
import type { ChipKey, Config } from "./types";
import { bytes, count, time } from "./words";
import { boardOf, type World } from "./world";

type Change = (change: Partial<Config>) => void;

const stop = (value: number, label: string, mark?: string): Stop =>
  mark ? { value, label, mark } : { value, label };
const us = (values: [number, string?][]): Stop[] =>
  values.map(([value, mark]) => stop(value * 1000, time(value * 1000), mark));

const READ_US: Stop[] = us([
  [12],
  [20],
  [25, "SLC"],
  [35],
  [50],
  [60, "MLC"],
  [75],
  [90, "TLC"],
  [130],
]);
const PROGRAM_US: Stop[] = us([
  [100],
  [200, "SLC"],
  [250],
  [300],
  [500],
  [700],
  [900, "MLC"],
  [1300],
  [2000, "TLC"],
]);
const ERASE_US: Stop[] = us([
  [500, "SLC"],
  [700],
  [1000],
  [1500],
  [2000],
  [3000, "MLC"],
  [5000],
  [10000, "TLC"],
]);
const BUS_PS: Stop[] = [
  [5_000, "NV-DDR"],
  [10_000],
  [20_000, "EDO 50 MHz"],
  [25_000],
  [40_000],
  [50_000, "async"],
  [100_000],
].map(([value, mark]) =>
  stop(value as number, `${(value as number) / 1000} ns a byte`, mark as string),
);
const PAGES: Stop[] = [512, 2048, 4096, 8192, 16384].map((value) =>
  stop(
    value,
    bytes(value),
    value === 512 ? "small" : value === 2048 ? "SLC" : value === 8192 ? "MLC" : undefined,
  ),
);
const PER_BLOCK: Stop[] = [32, 64, 128, 256].map((value) => stop(value, `${value} pages`));
const WINDOWS: Stop[] = [
  stop(-1, "as the kernel", "kernel"),
  stop(0, "off", "off"),
  ...[4, 8, 16, 32, 64].map((value) => stop(value, `${value} KiB`)),
  stop(128, "128 KiB", "usual"),
  ...[256, 512, 1024].map((value) => stop(value, `${value} KiB`)),
];
/** Windows that are narrower show the chip's sliders when asked. */
const NARROW = 820;
const POWERS = (from: number, to: number): number[] => {
  const all: number[] = [];
  for (let value = from; value <= to; value *= 2) all.push(value);
  return all;
};
const REQUESTS = POWERS(1, 65536).map((value) => stop(value, count(value)));
const SIZES = POWERS(512, 131072).map((value) =>
  stop(value, bytes(value), value === 4096 ? "a page" : ""),
);
const FILES = POWERS(64, 32768).map((value) => stop(value, bytes(value * 1024)));
const BAD = [0, 1, 2, 4, 8, 16, 32].map((value) => stop(value, count(value)));
const WORN = [0, 100, 1000, 10_000, 50_000, 90_000].map((value) =>
  stop(value, `${count(value)} erases`, value === 0 ? "new" : ""),
);
const MIB = [8, 12, 16, 24, 32, 50, 64, 100, 128, 200, 256];

function section(title: string, open: boolean, ...children: HTMLElement[]): HTMLElement {
  const made = document.createElement("details");
  made.className = "group";
  made.open = open;
  const head = document.createElement("summary");
  head.textContent = title;
  made.append(head, ...children);
  return made;
}

export class Panel {
  private readonly program: Select;
  private readonly think: Toggle;
  private readonly requests: Slider;
  private readonly sizes: Slider;
  private readonly files: Slider;
  private readonly order: Choice;
  private readonly fs: Choice;
  private readonly bulk: Toggle;
  private readonly kernel: Select;
  private readonly window: Slider;
  private readonly compressor: Choice;
  private readonly board: Select;
  private readonly chip: { key: ChipKey; slider: Slider; stops: Stop[] }[];
  private readonly bus: Slider;
  private readonly partition: Slider;
  private readonly bad: Slider;
  private readonly worn: Slider;
  private config: Config;

  constructor(
    root: HTMLElement,
    private readonly world: World,
    config: Config,
    change: Change,
    drop: HTMLElement,
  ) {
    this.config = config;
    this.program = new Select("Program", (program) => change({ program }));
    this.think = new Toggle("keep its pauses and its own work", (think) => change({ think }));
    this.requests = new Slider("Requests", (requests) => change({ requests }));
    this.sizes = new Slider("Bytes of each", (requestBytes) => change({ requestBytes }));
    this.files = new Slider("File", (fileKib) => change({ fileKib }));
    this.order = new Choice("Order", (order) => change({ order: order as Config["order"] }));
    this.fs = new Choice("File system", (fs) => change({ fs: fs as Config["fs"] }));
    this.bulk = new Toggle("mount option bulk_read", (bulkRead) => change({ bulkRead }));
    this.kernel = new Select("Kernel", (kernel) => change({ kernel }));
    this.window = new Slider("Read-ahead window", (readAhead) => change({ readAhead }));
    this.compressor = new Choice("Compressor", (compressor) => change({ compressor }));
    this.board = new Select("Board", (board) => change({ board, chip: {}, blocks: 0 }));
    const time = (key: ChipKey, label: string, stops: Stop[]) => ({
      key,
      stops,
      slider: new Slider(label, (value) => change(this.timed(key, value))),
    });
    this.chip = [
      time("read_array_ns", "Page read, tR", READ_US),
      time("program_array_ns", "Page write, tPROG", PROGRAM_US),
      time("erase_array_ns", "Block erase, tBERS", ERASE_US),
    ];
    this.bus = new Slider("Bus", (ps) => change(this.withBus(ps)));
    const pages = new Slider("Page", (value) => change(this.sized(value, 0)));
    const perBlock = new Slider("Block", (value) => change(this.sized(0, value)));
    this.chip.push({ key: "page_bytes", slider: pages, stops: PAGES });
    this.chip.push({ key: "pages_per_block", slider: perBlock, stops: PER_BLOCK });
    this.partition = new Slider("Partition", (blocks) => change({ blocks }));
    this.bad = new Slider("Bad blocks", (badBlocks) => change({ badBlocks }));
    this.worn = new Slider("Erases of each block before", (worn) => change({ worn }));
    const micro = [this.requests, this.sizes, this.files, this.order].map((one) => one.root);
    root.replaceChildren(
      section("Program", true, this.program.root, this.think.root, ...micro, drop),
      section(
        "Stack",
        true,
        this.fs.root,
        this.bulk.root,
        this.kernel.root,
        this.window.root,
        this.compressor.root,
      ),
      section(
        "Board and chip",
        innerWidth > NARROW,
        this.board.root,
        ...this.chip.slice(0, 3).map((one) => one.slider.root),
        this.bus.root,
        pages.root,
        perBlock.root,
        this.partition.root,
        this.bad.root,
        this.worn.root,
      ),
    );
  }

  private profile() {
    const profile = this.world.boards[this.config.board];
    if (!profile) throw new Error(`there is no board ${this.config.board}`);
    return profile.usual;
  }

  /** nandsim does the whole read again where another changes a column. */
  private columns(chip: Config["chip"]): Config["chip"] {
    const profile = this.profile().chip;
    if (profile.transfer !== "page") return chip;
    const read = chip.read_array_ns ?? profile.read_array_ns;
    const bus = chip.bus_read_ns ?? profile.bus_read_ns;
    return { ...chip, column_change_ns: read + bus };
  }

  private timed(key: ChipKey, value: number): Partial<Config> {
    return { chip: this.columns({ ...this.config.chip, [key]: value }) };
  }

  private withBus(ps: number): Partial<Config> {
    const chip = boardOf(this.world, this.config).chip;
    const ns = Math.round(((chip.page_bytes + chip.oob_bytes) * ps) / 1000);
    return { chip: this.columns({ ...this.config.chip, bus_read_ns: ns, bus_program_ns: ns }) };
  }

  /** Another geometry: as many bytes of the partition, and as long for a byte on the bus. */
  private sized(pageBytes: number, pagesPerBlock: number): Partial<Config> {
    const board = boardOf(this.world, { ...this.config, badBlocks: 0 });
    const chip = { ...this.config.chip };
    const before = board.chip;
    if (pageBytes) {
      chip.page_bytes = pageBytes;
      chip.oob_bytes = pageBytes / 32;
      chip.bus_read_ns = Math.round((before.bus_read_ns * pageBytes) / before.page_bytes);
      chip.bus_program_ns = Math.round((before.bus_program_ns * pageBytes) / before.page_bytes);
    }
    if (pagesPerBlock) chip.pages_per_block = pagesPerBlock;
    const bytesBefore = board.partition.blocks * before.page_bytes * before.pages_per_block;
    const block =
      (chip.page_bytes ?? before.page_bytes) * (chip.pages_per_block ?? before.pages_per_block);
    const blocks = Math.min(before.blocks, Math.max(1, Math.round(bytesBefore / block)));
    return { chip: this.columns(chip), blocks };
  }

  show(config: Config, dropped: Dropped | null): void {
    this.config = config;
    const { world } = this;
    const programs = [
      ...world.programs.map((one) => ({ value: one.name, label: one.title, group: "Recorded" })),
      { value: "micro-read", label: "Reads of one file", group: "The papers' micro-benchmark" },
      { value: "micro-write", label: "Writes to one file", group: "The papers' micro-benchmark" },
      ...(dropped ? [{ value: "own", label: dropped.name, group: "Yours" }] : []),
    ];
    this.program.show(programs, config.program);
    const micro = isMicro(config.program);
    const isWritten = config.program === "own" && dropped?.program == null;
    this.think.root.hidden = micro || isWritten;
    this.think.show(config.think);
    for (const one of [this.requests, this.sizes, this.files, this.order]) one.root.hidden = !micro;
    this.requests.show(REQUESTS, config.requests, count);
    this.sizes.show(SIZES, config.requestBytes, bytes);
    this.files.show(FILES, config.fileKib, (value) => bytes(value * 1024));
    const orders = ["sequential", "random"].map((value) => ({ value, label: value }));
    this.order.show(orders, config.order);
    const names = fileSystems().map((value) => ({ value, label: titleOf(value) }));
    this.fs.show(names, config.fs);
    this.bulk.root.hidden = config.fs !== "ubifs";
    this.bulk.show(config.bulkRead);
    const kernels = Object.entries(world.kernels);
    this.kernel.show(
      kernels.map(([value, kernel]) => ({ value, label: shortTitle(kernel.title) })),
      config.kernel,
    );
    this.window.show(WINDOWS, config.readAhead, (value) => `${value} KiB`);
    this.showCompressors(config);
    const boards = Object.entries(world.boards);
    this.board.show(
      boards.map(([value, board]) => ({ value, label: board.title })),
      config.board,
    );
    this.showChip(config);
  }

  private showCompressors(config: Config): void {
    const able = this.world.kernels[config.kernel]?.compressors[config.fs] ?? {};
    const why = `Linux ${config.kernel} does not mount ${titleOf(config.fs)} so`;
    const options = ["default", "none", "lzo", "zlib", "zstd"].map((value) => {
      const label = value === "default" ? "kernel's" : value;
      return value === "default" || able[value]
        ? { value, label }
        : { value, label, disabled: why };
    });
    this.compressor.root.hidden = !compresses(config.fs);
    this.compressor.show(options, config.compressor);
  }

  private showChip(config: Config): void {
    const profile = this.profile();
    const board = boardOf(this.world, config);
    for (const { key, slider, stops } of this.chip) {
      const own = profile.chip[key];
      const marked = withBoard(
        stops,
        own,
        key.endsWith("_ns") ? time : key === "page_bytes" ? bytes : pagesOf,
      );
      slider.show(marked, board.chip[key], key.endsWith("_ns") ? time : bytes);
    }
    const page = board.chip.page_bytes + board.chip.oob_bytes;
    const own = profile.chip.page_bytes + profile.chip.oob_bytes;
    const of = (ns: number, whole: number) => Math.round((ns * 1000) / whole);
    const named = (ps: number) => `${(ps / 1000).toFixed(1)} ns a byte`;
    const stops = withBoard(BUS_PS, of(profile.chip.bus_read_ns, own), named);
    const now = of(board.chip.bus_read_ns, page);
    const near = stops.find((one) => Math.abs(one.value - now) < 30);
    this.bus.show(stops, near ? near.value : now, named);
    const block = board.chip.page_bytes * board.chip.pages_per_block;
    const sizes = MIB.map((mib) => Math.round((mib * 1048576) / block)).filter(
      (blocks) => blocks >= 8 && blocks + board.partition.first_block <= board.chip.blocks,
    );
    const shown = (blocks: number) => `${bytes(blocks * block)}, ${count(blocks)} blocks`;
    const partitions = withBoard(
      sizes.map((blocks) => stop(blocks, shown(blocks))),
      profile.partition.blocks,
      shown,
    );
    this.partition.show(partitions, board.partition.blocks, shown);
    this.bad.show(BAD, config.badBlocks, count);
    this.worn.show(WORN, config.worn, (value) => `${count(value)} erases`);
  }
}

function pagesOf(value: number): string {
  return `${value} pages`;
}

/** Stops with a mark at what the board's profile has. */
function withBoard(stops: Stop[], own: number, label: (value: number) => string): Stop[] {
  const rest = stops.filter((one) => one.value !== own);
  return [...rest, stop(own, label(own), OWN)].sort((one, two) => one.value - two.value);
}

function shortTitle(title: string): string {
  return title.length > 58 ? `${title.slice(0, 56)}…` : title;
}
