/** The file systems, as boards/parts/file_systems.toml has them: part of the page's data. */

export interface FileSystemFacts {
  title: string;
  /** What its mount option `compr=` takes; empty if it never compresses. */
  compr: string[];
}

let known: Record<string, FileSystemFacts> = {};

/** Takes them from the page's data, before anything is shown. */
export function know(facts: Record<string, FileSystemFacts>): void {
  known = facts;
}

export function fileSystems(): string[] {
  return Object.keys(known);
}

export function titleOf(fs: string): string {
  return known[fs]?.title ?? fs;
}

export function compresses(fs: string): boolean {
  return (known[fs]?.compr.length ?? 0) > 0;
}
