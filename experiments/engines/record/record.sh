#!/bin/sh
# Records the requests of experiments/engines anew: ./record.sh OUT [ENGINE-REQUEST-NUMBER-BYTES…]. Each runs in an empty
# folder, on a database of 5,000 records that the same program made.
# On a busy machine: chrt -r 10 ./record.sh …, else the recordings have pauses that are not the programs' own.
# It needs gcc, libdb5.3-dev, liblmdb-dev and libsqlite3-dev, and flashbed on the PATH. OUT is on a disk, not in memory.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# Recordings name the command that ran: from a place that is the same on each machine.
bin=/tmp/flashbed-programs
rm -rf "$bin" && mkdir -p "$bin"
gcc -O2 -o "$bin/requests" "$here/requests.c" -ldb-5.3 -llmdb -lsqlite3
out=$(mkdir -p "$1" && cd "$1" && pwd)
shift
all=$(for engine in sqlite berkeleydb lmdb; do for request in insert select update join; do
	for number in 100 1000; do for bytes in 150 600; do echo "$engine-$request-$number-$bytes"; done; done; done; done)
made_for() {
	case $1 in
	insert) echo "create 0" ;;
	join) echo "fill-both 5000" ;;
	*) echo "fill 5000" ;;
	esac
}
for name in ${@:-$all}; do
	folder=$(mktemp -d "$out/XXXXXX")
	(
		cd "$folder"
		IFS=- read -r engine request number bytes <<-END
			$name
		END
		# shellcheck disable=SC2046 # two words
		"$bin/requests" "$engine" $(made_for "$request") "$bytes"
		rm -f log.* # Berkeley DB's log, which a made database leaves behind
		# What is mapped counts as read if it is in a page table, and the kernel maps cached pages around.
		for file in *; do dd of="$file" oflag=nocache conv=notrunc,fdatasync count=0 status=none; done
		flashbed record -o "$out/$name.parquet" -- "$bin/requests" "$engine" "$request" "$number" "$bytes" >/dev/null
	)
	rm -r "$folder"
	"$(dirname "$(command -v flashbed)")/python" "$here/../../programs/without_release.py" "$out/$name.parquet"
done
rm -r "$bin"
