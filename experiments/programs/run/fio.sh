#!/bin/sh
# fio: an example job that comes with it (Debian's fio-examples), made small enough for a partition of flash:
# one pass over 2 MiB by one process a job. psync stands for libaio, which the recorder does not follow.
set -eu
sed -e 's/^size=.*/size=2m/' -e 's/^ioengine=libaio/ioengine=psync/' -e 's/^numjobs=.*/numjobs=1/' \
	-e '/^time_based/d' -e '/^runtime=/d' -e '/^timeout=/d' -e '/^iodepth=/d' -e '/^direct=/d' \
	-e 's/^\[global\]/&\nfallocate=none/' "/usr/share/doc/fio/examples/$1.fio" >/tmp/job.fio
fio --output-format=terse --output=/dev/null /tmp/job.fio
