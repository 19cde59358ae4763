#!/bin/sh
# A logger with rotation: a line a message, fdatasync every tenth, five files of 8 KiB kept.
set -eu
rotate() {
	for number in 4 3 2 1; do
		if [ -e "log.$number" ]; then mv "log.$number" "log.$((number + 1))"; fi
	done
	mv log log.1
}
number=0
while [ "$number" -lt 400 ]; do
	number=$((number + 1))
	echo "2026-11-24T12:00:00 sensor[$((number % 7))]: measured $((number * 7919 % 10007)) mV" >>log
	if [ "$((number % 10))" -eq 0 ]; then
		sync -d log
		if [ "$(wc -c <log)" -gt 8192 ]; then rotate; fi
	fi
done
