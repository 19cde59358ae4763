#!/bin/sh
# Installs what the playground's TypeScript is built and checked with into build/playground/npm,
# unless it is there. Fails where npm is missing or reaches no registry.
#
# `make test` builds and checks the page at the same time: the second to come waits for the first.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
own=$root/build/playground/npm
command -v npm >/dev/null && command -v node >/dev/null || exit 1
mkdir -p "$own" "$root/build/logs"
exec 9>"$own.lock"
! command -v flock >/dev/null || flock 9
cmp -s "$root/page/web/package-lock.json" "$own/installed" && exit 0
rm -f "$own/installed"
cp "$root/page/web/package.json" "$root/page/web/package-lock.json" "$root/page/web/.npmrc" "$own/"
npm ci --prefix "$own" >>"$root/build/logs/playground.log" 2>&1
cp "$own/package-lock.json" "$own/installed"
