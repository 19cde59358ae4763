#!/bin/sh
# Installs what the playground's TypeScript is built and checked with into build/playground/npm,
# unless it is there. Fails where npm is missing or reaches no registry.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
own=$root/build/playground/npm
command -v npm >/dev/null && command -v node >/dev/null || exit 1
cmp -s "$root/page/web/package-lock.json" "$own/package-lock.json" && [ -x "$own/node_modules/.bin/tsc" ] && exit 0
mkdir -p "$own" "$root/build/logs"
cp "$root/page/web/package.json" "$root/page/web/package-lock.json" "$root/page/web/.npmrc" "$own/"
exec npm ci --prefix "$own" >>"$root/build/logs/playground.log" 2>&1
