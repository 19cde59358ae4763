#!/bin/sh
# Records the programs of this folder anew: ./record.sh OUT [NAME…]. Each runs in an empty folder.
# It needs sqlite3, git, python3, tar, postmark, lmdb-utils and db5.3-util, and flashbed on the PATH.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# Recordings name the command that ran: from a place that is the same on each machine.
scripts=/tmp/flashbed-programs
rm -rf "$scripts" && cp -r "$here/run" "$scripts"
out=$(mkdir -p "$1" && cd "$1" && pwd)
shift
command_of() {
	case $1 in
	logger | git | unpack | update | lmdb | berkeleydb) echo "sh $scripts/$1.sh" ;;
	config) echo "python3 -S $scripts/config.py" ;;
	sqlite-*) echo "sh $scripts/sqlite.sh ${1#sqlite-}" ;;
	postmark) echo "postmark $scripts/postmark.cfg" ;;
	*) echo "no program $1" >&2 && return 1 ;;
	esac
}
for name in "${@:-logger config sqlite-delete sqlite-truncate sqlite-persist sqlite-wal git unpack update postmark lmdb berkeleydb}"; do
	for each in $name; do
		folder=$(mktemp -d)
		command=$(command_of "$each")
		# shellcheck disable=SC2086 # words of a command
		(cd "$folder" && flashbed record -o "$out/$each.parquet" -- $command)
		rm -r "$folder"
	done
done
rm -r "$scripts"
