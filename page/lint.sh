#!/bin/sh
# Format, lint and types of the playground's TypeScript, where its tools have been installed.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
tools=$root/build/playground/npm/node_modules/.bin
[ -x "$tools/biome" ] || exit 0
cd "$root/page/web"
"$tools/biome" check --error-on-warnings . >/dev/null 2>&1 || exec "$tools/biome" check .
"$tools/tsc" -p .
