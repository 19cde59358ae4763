/** What every drawing shares: sharp canvases, and the colours of the page. */

/** Colours by the names of the page's custom properties. */
export type Palette = Record<string, string>;

const NAMES = [
  "ink",
  "muted",
  "line",
  "card",
  "empty",
  "live",
  "stale",
  "read",
  "program",
  "erase",
  "sync",
  "collect",
  "other",
  "accent",
];

export function palette(): Palette {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(
    NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]),
  );
}

/** The canvas as large as it is shown, in pixels of the screen; drawn in those of CSS. */
export function sized(
  canvas: HTMLCanvasElement,
  height: number,
): { context: CanvasRenderingContext2D; width: number; height: number } {
  const ratio = Math.min(2, window.devicePixelRatio || 1);
  const width = Math.max(
    1,
    Math.floor(canvas.clientWidth || canvas.parentElement?.clientWidth || 300),
  );
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  if (!context) throw new Error("this browser draws no canvas");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { context, width, height };
}
