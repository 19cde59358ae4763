#!/bin/sh
# dbench: the trace of a client of a file server, as fast as it goes, by one client.
set -eu
dbench -t 1 -D . -c /usr/share/dbench/client.txt 1 >/dev/null
