/** The page: what is chosen is simulated, and what came of it is shown. */

import { ChipView } from "./chip";
import { energiesOf } from "./energy";
import { embedOf, LiveFigure } from "./figure";
import { compresses, fileSystems, know } from "./filesystems";
import { Mix } from "./mix";
import { Panel } from "./panel";
import { Player, Scale } from "./play";
import { PRESETS } from "./presets";
import { type Dropped, readDropped } from "./program";
import { Lane, load, type Outcome } from "./runner";
import { showStack } from "./stack";
import { decode, encode, USUAL, viewOf } from "./state";
import { causes, components, pinned, type Shown, sentence, tiles, trio } from "./summary";
import { Timeline } from "./timeline";
import type { Answer, Config, FileSystem } from "./types";
import { count, few, time } from "./words";
import { boardOf, forgetTexts, requestOf, type World } from "./world";

const BYTES_MAX = 256 << 20;
/** A run that takes longer says so, and can be cancelled. */
const SAID_AFTER_MS = 250;

const $ = <T extends HTMLElement>(id: string): T => {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no element ${id}`);
  return found as T;
};

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

async function unpacked(id: string): Promise<ArrayBuffer> {
  const bytes = bytesOf(($(id).textContent ?? "").trim());
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

class Page {
  private config: Config;
  private dropped: Dropped | null = null;
  private shown: Shown | null = null;
  private kept: Shown | null = null;
  private chip: ChipView | null = null;
  private timeline: Timeline | null = null;
  private scale: Scale | null = null;
  private request = -1;
  private readonly lane = new Lane();
  private readonly aside = new Lane();
  private readonly others = new Map<FileSystem, Answer | string>();
  private readonly panel: Panel;
  private readonly mix: Mix;
  private readonly player: Player;
  private slow = 0;
  /** Plays what it shows first, for a reader who has chosen nothing yet. */
  private greets = location.hash.length < 2 && !matchMedia("(prefers-reduced-motion)").matches;
  /** Milliseconds from a change to its answer: for the tests. */
  readonly answered: number[] = [];
  /** How often something was asked for, and how often it was shown: equal when all is still. */
  asked = 0;
  settled = 0;

  constructor(private readonly world: World) {
    const { config, odd } = this.read();
    const first = PRESETS[0]?.config ?? USUAL;
    this.config = location.hash.length > 1 ? config : { ...first };
    this.panel = new Panel(
      $("panel"),
      world,
      this.config,
      (change) => this.change(change),
      this.field(),
    );
    this.mix = new Mix($("mix-card"), world, ({ program }) => {
      const opens = null;
      if (this.dropped) this.own({ ...this.dropped, name: program.title, program, opens });
    });
    this.player = new Player((place, jumped) => this.moved(place, jumped));
    this.wire();
    this.panel.show(this.config, null);
    this.showPresets();
    this.simulate();
    this.sayOdd(odd);
  }

  private sayOdd(odd: string[]): void {
    if (odd.length) this.say(`The address has ${few(odd)}, which this page does not know.`);
  }

  private read(address = location.hash.slice(1)): { config: Config; odd: string[] } {
    return decode(address, {
      programs: [...this.world.programs.map((one) => one.name), "micro-read", "micro-write"],
      kernels: Object.keys(this.world.kernels),
      boards: Object.keys(this.world.boards),
    });
  }

  /** The field for a program of the reader's. */
  private field(): HTMLElement {
    const label = document.createElement("label");
    label.className = "own";
    const input = document.createElement("input");
    input.type = "file";
    input.id = "file";
    input.addEventListener("change", () => {
      if (input.files?.[0]) void this.take(input.files[0]);
      input.value = "";
    });
    label.append("Drop a program of yours, or open one", input);
    return label;
  }

  private wire(): void {
    $("share").addEventListener("click", () => void this.share());
    $("reset").addEventListener("click", () =>
      this.change({ ...(PRESETS[0]?.config ?? USUAL), chip: {} }),
    );
    $("theme").addEventListener("click", () => this.theme());
    $("cancel").addEventListener("click", () => this.cancel());
    $("pin").addEventListener("click", () => this.keep());
    $("all").addEventListener("click", () => this.point(-1));
    $("play").addEventListener("click", () => this.playOrPause());
    const scrub = $<HTMLInputElement>("scrub");
    scrub.addEventListener("input", () => {
      const to = Number(scrub.value) / 10_000; // pausing puts the scrubber where it plays
      this.player.pause();
      this.player.seek(to);
    });
    const speed = $<HTMLSelectElement>("speed");
    speed.addEventListener("change", () => {
      this.player.speed = Number(speed.value);
    });
    $("squeeze").addEventListener("change", () => this.rescale());
    this.wireChip();
    this.wireTimeline();
    this.wireDrop();
    addEventListener("hashchange", () => {
      if (location.hash.slice(1) === encode(this.config)) return;
      const { config, odd } = this.read();
      this.change(config);
      this.sayOdd(odd);
    });
    let laid = innerWidth;
    addEventListener("resize", () => {
      if (innerWidth === laid) return;
      laid = innerWidth;
      this.layOut();
    });
  }

  private showPresets(): void {
    const now = encode(this.config);
    $("presets").replaceChildren(
      ...PRESETS.map(({ label, config }) => {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = label;
        button.setAttribute("aria-pressed", String(encode(config) === now));
        button.addEventListener("click", () => this.change({ ...config, chip: {} }));
        return button;
      }),
    );
  }

  private wireChip(): void {
    const canvas = $<HTMLCanvasElement>("chip");
    const point = (event: PointerEvent) => {
      const box = canvas.getBoundingClientRect();
      this.cell(this.chip?.blockAt(event.clientX - box.left, event.clientY - box.top) ?? -1);
    };
    canvas.addEventListener("pointermove", point);
    canvas.addEventListener("pointerdown", point);
    canvas.addEventListener("pointerleave", () => this.cell(-1));
    canvas.addEventListener("keydown", (event) => {
      if (event.key === " ") this.playOrPause();
      else if (event.key.startsWith("Arrow")) this.cell(this.chip?.neighbour(event.key) ?? -1);
      else return;
      event.preventDefault();
    });
  }

  private wireTimeline(): void {
    const canvas = $<HTMLCanvasElement>("timeline");
    const place = (event: PointerEvent) =>
      this.timeline?.placeAt(event.clientX - canvas.getBoundingClientRect().left) ?? 0;
    canvas.addEventListener("pointermove", (event) => {
      this.point(this.timeline?.requestAt(place(event)) ?? -1);
      if (event.buttons & 1) this.player.seek(place(event));
    });
    canvas.addEventListener("pointerdown", (event) => {
      this.player.pause();
      this.player.seek(place(event));
      this.point(this.timeline?.requestAt(place(event)) ?? -1);
    });
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1, PageDown: 25, PageUp: -25 }[event.key];
      if (!step || !this.shown || !this.scale) return;
      event.preventDefault();
      const { request_start } = this.shown.answer.columns;
      const next = Math.min(request_start.length - 1, Math.max(0, this.request + step));
      this.player.pause();
      this.player.seek(this.scale.place(request_start[next] ?? 0));
      this.point(next);
    });
  }

  private wireDrop(): void {
    const cover = $("drop");
    addEventListener("dragover", (event) => {
      event.preventDefault();
      cover.hidden = false;
    });
    addEventListener("dragleave", (event) => {
      if (!event.relatedTarget) cover.hidden = true;
    });
    addEventListener("drop", (event) => {
      event.preventDefault();
      cover.hidden = true;
      const file = event.dataTransfer?.files[0];
      if (file) void this.take(file);
    });
  }

  /** Takes a dropped file, or says in a line why not. */
  async take(file: File): Promise<void> {
    try {
      if (file.size > BYTES_MAX) throw new Error(`${file.name} is larger than 256 MiB`);
      this.own(await readDropped(file.name, new Uint8Array(await file.arrayBuffer())));
    } catch (error) {
      this.say(error instanceof Error ? error.message : String(error));
    }
  }

  /** Takes a program of the reader's, and shows it unless an address says what to show. */
  own(program: Dropped, shown = true): void {
    this.dropped = program;
    forgetTexts();
    if (program.board) this.world.boards[program.board.name] = program.board.tables;
    const opens = program.opens === null ? {} : this.read(program.opens).config;
    this.change(shown ? { ...opens, program: "own" } : {});
  }

  private say(text: string): void {
    $("notice").hidden = text === "";
    $("notice").textContent = text;
  }

  private change(change: Partial<Config>): void {
    this.config = { ...this.config, ...change };
    const { fs, kernel, compressor } = this.config;
    const able = this.world.kernels[kernel]?.compressors[fs];
    if (!compresses(fs) || (compressor !== "default" && !able?.[compressor])) {
      this.config.compressor = "default";
    }
    if (fs !== "ubifs") this.config.bulkRead = false;
    this.say("");
    this.panel.show(this.config, this.dropped);
    this.showPresets();
    const words = encode(this.config);
    if (this.config.program !== "own" && !document.body.dataset.view) {
      history.replaceState(null, "", `#${words}`);
    }
    this.simulate();
  }

  /** Runs what is chosen, and then the same on the other file systems. */
  private simulate(): void {
    const config = this.config;
    const began = performance.now();
    this.asked += 1;
    const turn = this.asked;
    this.aside.cancel();
    clearTimeout(this.slow);
    this.slow = window.setTimeout(() => this.working(0), SAID_AFTER_MS);
    $("answer").classList.add("stale");
    this.lane.run(
      () => requestOf(this.world, config, this.dropped),
      (outcome) => {
        clearTimeout(this.slow);
        $("working").hidden = true;
        $("answer").classList.remove("stale");
        if (outcome.kind === "answer") this.show(config, outcome.answer);
        else this.refused(outcome);
        this.answered.push(performance.now() - began);
        this.settled = turn;
        this.simulateOthers(config, outcome);
        this.mix.show(config, this.dropped);
      },
      (operations) => {
        if (performance.now() - began > SAID_AFTER_MS) this.working(operations);
      },
    );
  }

  private working(operations: number): void {
    $("working").hidden = false;
    const words = operations ? `${count(operations)} operations so far` : "simulating";
    ($("working").firstElementChild as HTMLElement).textContent = words;
  }

  private cancel(): void {
    this.lane.cancel();
    clearTimeout(this.slow);
    $("working").hidden = true;
    this.settled = this.asked;
    this.say("Cancelled. What is shown is the answer before.");
  }

  private refused(outcome: Exclude<Outcome, { kind: "answer" }>): void {
    if (outcome.kind === "broken") {
      this.say(`The simulator found a bug of its own: ${outcome.message}`);
    } else {
      this.say(`Not simulated: ${outcome.message}`);
    }
  }

  private simulateOthers(config: Config, outcome: Outcome): void {
    this.others.clear();
    for (const fs of fileSystems()) this.others.set(fs, "…");
    this.others.set(config.fs, outcome.kind === "answer" ? outcome.answer : outcome.message);
    const rest = fileSystems().filter((fs) => fs !== config.fs);
    const next = () => {
      trio($("trio"), config.fs, this.others, (fs) => this.change({ fs }));
      const fs = rest.shift();
      if (!fs) return;
      const other: Config = { ...config, fs, bulkRead: false };
      const able = this.world.kernels[config.kernel]?.compressors[fs];
      if (!able?.[config.compressor]) other.compressor = "default";
      const request = () => {
        const made = requestOf(this.world, other, this.dropped);
        made.header.rows_max = 0;
        return made;
      };
      this.aside.run(request, (result) => {
        this.others.set(fs, result.kind === "answer" ? result.answer : result.message);
        next();
      });
    };
    next();
  }

  private title(config: Config): string {
    if (config.program === "own") return this.dropped?.name ?? "";
    if (config.program === "micro-read") {
      return `${count(config.requests)} ${config.order} reads`;
    }
    if (config.program === "micro-write") {
      return `${count(config.requests)} ${config.order} writes`;
    }
    return this.world.programs.find((one) => one.name === config.program)?.title ?? "";
  }

  private show(config: Config, answer: Answer): void {
    const board = boardOf(this.world, config);
    const endurance = this.world.boards[config.board]?.endurance ?? null;
    this.shown = { config, answer, board, endurance, energies: energiesOf(answer) };
    this.summarise();
    this.scale = new Scale(answer, $<HTMLInputElement>("squeeze").checked);
    this.chip = new ChipView($<HTMLCanvasElement>("chip"), answer, board);
    this.timeline = new Timeline($<HTMLCanvasElement>("timeline"), answer, this.scale);
    this.player.wholeSeconds = Math.min(
      20,
      5 + Math.log10(answer.columns.flash_kind.length + 1) * 2.4,
    );
    this.player.seek(this.player.playing || this.greets ? 0 : 1);
    this.point(-1);
    if (this.greets) this.player.play();
    this.greets = false;
    this.button();
    if (answer.requests_left_out + answer.flash_left_out > 0) {
      this.say("The first two million rows are drawn; the numbers are of all.");
    }
  }

  private summarise(): void {
    if (!this.shown) return;
    sentence($("sentence"), this.title(this.shown.config), this.shown);
    tiles($("tiles"), this.shown, this.kept);
    causes($("causes"), $("cause-legend"), this.shown.answer);
    components($("components"), $("component-legend"), this.shown.energies);
    pinned($("pinned"), this.shown, this.kept);
    $("pin").textContent = this.kept ? "Keep this one instead" : "Keep this one";
  }

  private keep(): void {
    this.kept = this.shown;
    this.summarise();
  }

  private rescale(): void {
    if (!this.shown || !this.timeline) return;
    const at = this.scale?.time(this.player.place) ?? 0;
    this.scale = new Scale(this.shown.answer, $<HTMLInputElement>("squeeze").checked);
    this.timeline.rescale(this.scale);
    this.player.seek(this.scale.place(at));
  }

  private playOrPause(): void {
    if (this.player.playing) this.player.pause();
    else this.player.play();
    this.button();
  }

  private button(): void {
    const { playing } = this.player;
    $("play").textContent = playing ? "❚❚" : "▶";
    $("play").setAttribute("aria-label", playing ? "Pause" : "Play");
  }

  private moved(place: number, jumped: boolean): void {
    if (!this.chip || !this.scale || !this.shown) return;
    const at = this.scale.time(place);
    const over = this.chip.moveTo(at, jumped);
    this.timeline?.draw(place);
    $<HTMLInputElement>("scrub").value = String(Math.round(place * 10_000));
    const { columns, counts } = this.shown.answer;
    const operations = `${count(over)} of ${count(columns.flash_kind.length)} flash operations`;
    $("moment").textContent =
      `${time(Math.round(at))} of ${time(counts.elapsed_ns)} · ${operations}`;
    this.cell(this.chip.selected);
    this.button();
  }

  private cell(block: number): void {
    if (!this.chip || !this.shown) return;
    if (block !== this.chip.selected) this.chip.select(block);
    if (block < 0) {
      const { programmed, all, live } = this.chip.sums();
      const share =
        live === null ? "" : `, ${(live * 100).toFixed(1)} % of the partition still of use`;
      $("cell").textContent =
        `${count(programmed)} of ${count(all)} pages written${share}. Point at a block.`;
      return;
    }
    const facts = this.chip.facts(block);
    const live =
      facts.liveShare === null ? "" : `, ${Math.round(facts.liveShare * 100)} % of it of use`;
    const erased = facts.erases === 1 ? "once" : `${count(facts.erases)} times`;
    $("cell").textContent =
      `Block ${facts.block}: ${facts.pages} of ${facts.ofPages} pages written${live}; ` +
      `erased ${erased} so far.`;
  }

  /** Shows a call in the stack; -1 is all of them. */
  private point(request: number): void {
    if (!this.shown || !this.timeline) return;
    this.request = request;
    this.timeline.selected = request;
    this.timeline.draw(this.player.place);
    const { config, board, answer } = this.shown;
    showStack($("stack"), $("request"), config, board, answer, request);
  }

  private layOut(): void {
    this.chip?.layOut();
    this.timeline?.layOut();
  }

  private async share(): Promise<void> {
    try {
      await navigator.clipboard.writeText(location.href);
      $("share").textContent = "Copied";
    } catch {
      $("share").textContent = "It is the address above";
    }
    setTimeout(() => {
      $("share").textContent = "Copy link";
    }, 1600);
  }

  private theme(): void {
    const root = document.documentElement;
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("theme", root.dataset.theme);
    } catch {
      // A browser that keeps nothing of files on a disk.
    }
    this.layOut();
    this.moved(this.player.place, true);
  }

  private get still(): boolean {
    return this.settled === this.asked;
  }

  /** What the tests read: the last answer, its request, and times. */
  get state() {
    return {
      config: this.config,
      address: encode(this.config),
      shown: this.shown,
      settled: [this.aside, this.lane, this.mix].every((one) => !one.busy) && this.still,
      mix: this.mix.found,
      answered: this.answered,
      frames: this.player.frames,
      place: this.player.place,
      playing: this.player.playing,
      others: Object.fromEntries(this.others),
      header: () => requestOf(this.world, this.config, this.dropped),
    };
  }
}

function legends(): void {
  const keys: Record<string, [string, string, boolean?][]> = {
    "chip-legend": [
      ["live", "of use"],
      ["stale", "obsolete"],
      ["empty", "erased"],
      ["erase", "erased often"],
      ["read", "is read", true],
      ["program", "is written", true],
      ["erase", "is erased", true],
    ],
    "time-legend": [
      ["read", "read"],
      ["program", "write"],
      ["sync", "sync"],
      ["erase", "erase"],
      ["collect", "kernel threads"],
    ],
  };
  for (const [id, entries] of Object.entries(keys)) {
    $(id).replaceChildren(
      ...entries.map(([colour, name, ring]) => {
        const key = document.createElement("span");
        const swatch = document.createElement("i");
        swatch.style.background = `var(--${colour})`;
        swatch.style.borderColor = `var(--${colour})`;
        if (ring) swatch.className = "ring";
        key.append(swatch, name);
        return key;
      }),
    );
  }
}

function chosenTheme(): string {
  try {
    const kept = localStorage.getItem("theme");
    if (kept === "dark" || kept === "light") return kept;
  } catch {
    // The system's, then.
  }
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** In a page of the documents: a figure that is simulated there (figure.ts). */
function showFigure(world: World, name: string): void {
  const card = document.createElement("section");
  card.className = "card";
  document.querySelector("main")?.replaceChildren(card);
  Object.assign(window, { playground: new LiveFigure(card, world, name) });
}

/** In another page's frame one part is shown, with a link to all of it. */
function showView(): void {
  const view = viewOf(location.hash.slice(1));
  if (!view) return;
  document.body.dataset.view = view;
  for (const part of document.querySelectorAll<HTMLElement>("[data-part]")) {
    part.hidden = part.dataset.part !== view;
  }
  const words = new URLSearchParams(location.hash.slice(1));
  words.delete("view");
  const link = document.createElement("a");
  link.href = `#${words}`;
  link.target = "_blank";
  link.textContent = "Open it in the playground";
  $("foot").replaceChildren(link);
}

async function begin(): Promise<void> {
  document.documentElement.dataset.theme = chosenTheme();
  legends();
  showView();
  if (embedOf(location.hash.slice(1))) document.body.dataset.view = "figure";
  const [wasm, data] = await Promise.all([unpacked("wasm"), unpacked("data")]);
  await load(wasm, $("worker").textContent ?? "");
  const world = JSON.parse(new TextDecoder().decode(data)) as World;
  know(world.file_systems);
  const embed = embedOf(location.hash.slice(1));
  if (embed) {
    showFigure(world, embed);
    return;
  }
  const page = new Page(world);
  Object.assign(window, { playground: page });
  const own = $("own").textContent?.trim();
  if (own) page.own(await readDropped("this page", bytesOf(own)), location.hash.length < 2);
}

begin().catch((error: unknown) => {
  const message = error instanceof Error ? error.message : String(error);
  $("sentence").textContent = `This browser cannot run the simulator: ${message}`;
});
