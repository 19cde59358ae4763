// Makes one file of the page: node build.mjs WASM DATA OUT. Run where esbuild is installed.
// The simulator and the data are compressed and stand in the page as base64, so that it works from
// a disk, where a browser fetches nothing.
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const [wasm, data, out] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const { buildSync } = createRequire(join(process.cwd(), "x.js"))("esbuild");

function bundled(file) {
  const made = buildSync({
    entryPoints: [join(here, file)],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: ["chrome110", "firefox115"],
    logLevel: "warning",
  });
  return made.outputFiles[0].text.replaceAll("</script", "<\\/script");
}

const packed = (file) => gzipSync(readFileSync(file), { level: 9 }).toString("base64");
const parts = {
  STYLE: readFileSync(join(here, "style.css"), "utf8"),
  WASM: packed(wasm),
  DATA: packed(data),
  WORKER: bundled("worker.ts"),
  MAIN: bundled("main.ts"),
};
let page = readFileSync(join(here, "index.html"), "utf8");
for (const [name, text] of Object.entries(parts)) {
  page = page.split(`{{${name}}}`).join(text);
}
// Under its name only when whole: reports may have hard links to the page that was there before.
writeFileSync(`${out}.new`, page);
renameSync(`${out}.new`, out);
const wire = gzipSync(page, { level: 9 }).length;
console.log(`${out}: ${page.length} bytes, ${wire} compressed`);
