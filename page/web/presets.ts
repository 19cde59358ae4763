/** Configurations that show something at once. */

import { USUAL } from "./state";
import type { Config } from "./types";

export interface Preset {
  label: string;
  config: Config;
}

const of = (label: string, change: Partial<Config>): Preset => ({
  label,
  config: { ...USUAL, ...change },
});

export const PRESETS: Preset[] = [
  of("A partition fills, garbage collection starts", {
    program: "micro-write",
    fs: "jffs2",
    requests: 8192,
    fileKib: 4096,
    blocks: 128,
  }),
  of("SQLite commits rows", { program: "sqlite-wal", fs: "ubifs" }),
  of("Three commits of git", { program: "git", fs: "yaffs2" }),
  of("Random reads, read-ahead on", {
    program: "micro-read",
    fs: "jffs2",
    kernel: "3.12",
    readAhead: 128,
    requests: 1024,
  }),
  of("A mail server on YAFFS2", { program: "postmark", fs: "yaffs2", blocks: 64 }),
];
