#!/bin/sh
# A configuration that is written beside, synced and renamed each minute, for half an hour.
set -eu
number=0
while [ "$number" -lt 30 ]; do
	number=$((number + 1))
	printf 'interface=eth0\naddress=192.168.1.20\nsequence=%d\n' "$number" >config.new
	sync config.new
	mv config.new config
	sleep 60
done
