#!/bin/sh
# Format, lint and types of the playground's TypeScript, where npm can install its tools.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
tools=$root/build/playground/npm/node_modules/.bin
"$root/page/npm.sh" || exit 0
cd "$root/page/web"
"$tools/biome" check --error-on-warnings . >/dev/null 2>&1 || exec "$tools/biome" check .
"$tools/tsc" -p .
