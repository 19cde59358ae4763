#!/bin/sh
# A package unpacked as a package manager does: beside, synced, renamed into place, listed.
set -eu
mkdir -p usr/share new
number=0
while [ "$number" -lt 24 ]; do
	number=$((number + 1))
	head -c $((number * 700)) "$0" >"new/file$number" 2>/dev/null
	seq 1 $((number * 40)) >>"new/file$number"
done
tar cf package.tar new
rm -r new
tar xf package.tar
for file in new/*; do
	sync "$file"
	mv "$file" "usr/share/${file#new/}"
done
ls usr/share >list.new
sync list.new
mv list.new list
rmdir new
rm package.tar
