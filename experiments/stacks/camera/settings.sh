#!/bin/sh
# Settings that are written beside, synced and renamed, ten times in an hour.
set -eu
number=0
while [ "$number" -lt 10 ]; do
	number=$((number + 1))
	{
		echo "name=camera-7"
		echo "sequence=$number"
		key=0
		while [ "$key" -lt 40 ]; do
			key=$((key + 1))
			echo "zone.$key=$((number * 7919 * key % 10007))"
		done
	} >settings.new
	sync settings.new
	mv settings.new settings
	sleep 360
done
