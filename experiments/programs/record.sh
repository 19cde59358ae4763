#!/bin/sh
# Records the programs of this folder anew: ./record.sh OUT [NAME…]. Each runs in an empty folder.
# On a busy machine: chrt -r 10 ./record.sh …, else the recordings have pauses that are not the programs' own.
# It needs sqlite3, git, python3, tar, postmark, lmdb-utils, db5.3-util, rocksdb-tools, dbench, fio and fio-examples, and
# flashbed on the PATH.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# Recordings name the command that ran: from a place that is the same on each machine.
scripts=/tmp/flashbed-programs
rm -rf "$scripts" && cp -r "$here/run" "$scripts"
out=$(mkdir -p "$1" && cd "$1" && pwd)
shift
command_of() {
	case $1 in
	logger | git | unpack | update | lmdb | berkeleydb | rocksdb | dbench) echo "sh $scripts/$1.sh" ;;
	config) echo "python3 -S $scripts/config.py" ;;
	fio-iometer) echo "sh $scripts/fio.sh iometer-file-access-server" ;;
	fio-rand-rw) echo "sh $scripts/fio.sh fio-rand-RW" ;;
	fio-seq-write) echo "sh $scripts/fio.sh fio-seq-write" ;;
	fio-tiobench) echo "sh $scripts/fio.sh tiobench-example" ;;
	sqlite-patterns | sqlite-speedtest) echo "sh $scripts/$1.sh" ;;
	sqlite-*) echo "sh $scripts/sqlite.sh ${1#sqlite-}" ;;
	postmark) echo "postmark $scripts/postmark.cfg" ;;
	*) echo "no program $1" >&2 && return 1 ;;
	esac
}
all="logger config sqlite-delete sqlite-truncate sqlite-persist sqlite-memory sqlite-off sqlite-wal"
all="$all sqlite-patterns sqlite-speedtest git unpack update postmark lmdb berkeleydb rocksdb dbench"
all="$all fio-iometer fio-rand-rw fio-seq-write fio-tiobench"
for name in "${@:-$all}"; do
	for each in $name; do
		folder=$(mktemp -d)
		command=$(command_of "$each")
		# shellcheck disable=SC2086 # words of a command
		(cd "$folder" && flashbed record -o "$out/$each.parquet" -- $command)
		rm -r "$folder"
		if [ "$each" = dbench ]; then # what is behind these calls repeats them
			mv "$out/$each.parquet" "$out/whole.parquet"
			flashbed ops cut "$out/whole.parquet" -o "$out/$each.parquet" --first 10000
			rm "$out/whole.parquet"
		fi
		"$(dirname "$(command -v flashbed)")/python" "$here/without_release.py" "$out/$each.parquet"
	done
done
rm -r "$scripts"
