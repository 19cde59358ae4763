#!/bin/sh
# A line of a log each 10 s, synced, for ten minutes.
set -eu
number=0
while [ "$number" -lt 60 ]; do
	number=$((number + 1))
	echo "gateway[412]: temperature 21.$((number % 10)), humidity $((40 + number % 7)), all links up" >>log
	sync log
	sleep 10
done
