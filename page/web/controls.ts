/** Controls of the page: each shows a configuration and says what becomes of it. */

export interface Stop {
  value: number;
  label: string;
  /** What a data sheet or the kernel has, shown below the slider. */
  mark?: string;
}

/** The mark of what the board's profile has. */
export const OWN = "board";
/** How much of a slider's width half a letter of a mark takes, with some air. */
const LETTER_SHARE = 0.0145;
let ids = 0;

function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  className = "",
  text = "",
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
}

/** A slider over given values, with the marks that some of them have. */
export class Slider {
  readonly root = element("div", "field");
  private readonly input = element("input");
  private readonly output = element("output");
  private readonly marks = element("div", "marks");
  private stops: Stop[] = [];

  constructor(
    label: string,
    private readonly changed: (value: number) => void,
    title = "",
  ) {
    ids += 1;
    this.input.type = "range";
    this.input.id = `slider-${ids}`;
    this.input.min = "0";
    this.input.step = "1";
    const caption = element("label", "", label);
    caption.htmlFor = this.input.id;
    if (title) this.root.title = title;
    this.output.htmlFor.add(this.input.id);
    const head = element("div", "field-head");
    head.append(caption, this.output);
    this.marks.setAttribute("aria-hidden", "true");
    this.root.append(head, this.input, this.marks);
    this.input.addEventListener("input", () => {
      const stop = this.stops[Number(this.input.value)];
      if (!stop) return;
      this.output.textContent = stop.label;
      this.input.setAttribute("aria-valuetext", stop.label);
      this.changed(stop.value);
    });
  }

  /** Shows a value, which becomes a stop of its own where it is none. */
  show(stops: Stop[], value: number, own: (value: number) => string): void {
    const all = stops.some((stop) => stop.value === value)
      ? stops
      : [...stops, { value, label: own(value) }].sort((one, two) => one.value - two.value);
    this.stops = all;
    this.input.max = String(all.length - 1);
    const at = all.findIndex((stop) => stop.value === value);
    this.input.value = String(at);
    this.output.textContent = all[at]?.label ?? "";
    this.input.setAttribute("aria-valuetext", all[at]?.label ?? "");
    const shares = all.map((_, index) => (all.length > 1 ? index / (all.length - 1) : 0));
    const placed: { share: number; half: number }[] = [];
    const order = all.map((_, index) => index).filter((index) => all[index]?.mark);
    // The board's own value is marked in any case; others where there is space for their word.
    order.sort((one, two) => Number(all[two]?.mark === OWN) - Number(all[one]?.mark === OWN));
    const shown = order.flatMap((index) => {
      const word = all[index]?.mark ?? "";
      const share = shares[index] ?? 0;
      const half = word.length * LETTER_SHARE;
      if (placed.some((one) => Math.abs(one.share - share) < one.half + half)) return [];
      placed.push({ share, half });
      const mark = element("span", "", word);
      mark.style.left = `${share * 100}%`;
      if (share < 0.15) mark.className = "first";
      if (share > 0.85) mark.className = "last";
      return [mark];
    });
    this.marks.replaceChildren(...shown);
    this.marks.hidden = shown.length === 0;
  }
}

/** One of a few words, side by side. */
export class Choice {
  readonly root = element("div", "field");
  private readonly group = element("div", "choice");

  constructor(
    label: string,
    private readonly changed: (value: string) => void,
  ) {
    const caption = element("div", "field-head", "");
    caption.append(element("span", "", label));
    this.group.setAttribute("role", "radiogroup");
    this.group.setAttribute("aria-label", label);
    this.root.append(caption, this.group);
    this.group.addEventListener("keydown", (event) => {
      const buttons = [...this.group.querySelectorAll("button:not(:disabled)")] as HTMLElement[];
      const at = buttons.indexOf(document.activeElement as HTMLElement);
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step || at < 0) return;
      event.preventDefault();
      const next = buttons[(at + step + buttons.length) % buttons.length];
      next?.focus();
      next?.click();
    });
  }

  show(options: { value: string; label: string; disabled?: string }[], value: string): void {
    const buttons = [...this.group.querySelectorAll("button")];
    if (
      buttons.map((button) => button.dataset.value).join() !== options.map((o) => o.value).join()
    ) {
      this.group.replaceChildren(
        ...options.map((option) => {
          const button = element("button", "", option.label);
          button.type = "button";
          button.dataset.value = option.value;
          button.setAttribute("role", "radio");
          button.addEventListener("click", () => this.changed(option.value));
          return button;
        }),
      );
    }
    [...this.group.querySelectorAll("button")].forEach((button, index) => {
      const chosen = button.dataset.value === value;
      const option = options[index];
      button.setAttribute("aria-checked", String(chosen));
      button.tabIndex = chosen ? 0 : -1;
      button.disabled = Boolean(option?.disabled);
      button.title = option?.disabled ?? "";
    });
  }
}

/** One of many words. */
export class Select {
  readonly root = element("div", "field");
  private readonly select = element("select");

  constructor(label: string, changed: (value: string) => void) {
    ids += 1;
    this.select.id = `select-${ids}`;
    const caption = element("label", "field-head", label);
    caption.htmlFor = this.select.id;
    this.root.append(caption, this.select);
    this.select.addEventListener("change", () => changed(this.select.value));
  }

  show(options: { value: string; label: string; group?: string }[], value: string): void {
    const groups = new Map<string, HTMLOptGroupElement>();
    const all: HTMLElement[] = [];
    for (const option of options) {
      const made = element("option", "", option.label);
      made.value = option.value;
      if (!option.group) {
        all.push(made);
        continue;
      }
      let group = groups.get(option.group);
      if (!group) {
        group = element("optgroup");
        group.label = option.group;
        groups.set(option.group, group);
        all.push(group);
      }
      group.append(made);
    }
    this.select.replaceChildren(...all);
    this.select.value = value;
  }
}

/** Yes or no. */
export class Toggle {
  readonly root = element("label", "toggle");
  private readonly input = element("input");

  constructor(label: string, changed: (value: boolean) => void) {
    this.input.type = "checkbox";
    this.root.append(this.input, element("span", "", label));
    this.input.addEventListener("change", () => changed(this.input.checked));
  }

  show(value: boolean): void {
    this.input.checked = value;
  }
}
