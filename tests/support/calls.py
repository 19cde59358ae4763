"""Programs of version 2, one for each metadata call and for mapped files."""

from __future__ import annotations

from tests.support.calls_about_names import ABOUT_NAMES

__all__ = ["PROGRAMS", "REFUSED"]

_FILE = """
open 0 a rw,create
write 0 0 10000 7 0
"""

PROGRAMS = {
    **ABOUT_NAMES,
    "link": _FILE
    + """
fsync 0
mkdir d
link a d/b
link a a
link missing c
link d e
link a missing/c
close 0
stat d/b
unlink a
stat a
open 0 d/b rw
read 0 0 10000
write 0 4096 4096 8 0
fsync 0
close 0
sync
drop_caches
open 0 d/b ro
read 0 0 10000
unlink d/b
read 0 0 10000
close 0
sync
""",
    "link-many": _FILE
    + """
close 0
link a b
link a c
link a long-name-of-a-link
sync
drop_caches
unlink b
unlink a
stat c
rename c d
stat d
rename d long-name-of-a-link
stat d
stat long-name-of-a-link
unlink long-name-of-a-link
unlink d
stat long-name-of-a-link
stat d
sync
remount
stat d
""",
    "link-over": """
open 0 a rw,create
write 0 0 5000 1 0
close 0
open 0 b rw,create
write 0 0 9000 2 0
close 0
link b c
sync
rename a b
stat c
open 0 c ro
read 0 0 9000
close 0
rename b c
remount
stat b
open 0 c ro
read 0 0 9000
close 0
""",
    "symlink": _FILE
    + """
close 0
mkdir d
symlink a s
symlink ../a d/up
symlink d dir
symlink loop loop
symlink nowhere n
symlink a s
readlink s
readlink a
readlink missing
stat s
stat loop
open 0 s ro
read 0 0 4096
close 0
open 0 d/up ro
read 0 4096 4096
close 0
open 0 dir/up ro
close 0
open 0 loop ro
close 0
open 0 n ro
close 0
open 0 s ro,nofollow
close 0
open 0 n rw,create
write 0 0 100 3 0
close 0
stat nowhere
sync
drop_caches
readlink s
open 0 dir/up ro
read 0 0 10000
close 0
remount
readlink dir
readlink d/up
stat dir/up
unlink s
unlink dir
rename d/up t
readlink t
unlink t
sync
""",
    "attributes": _FILE
    + """
chmod a 384
mkdir d
chmod d 448
chown a 1000 1000
chown d 1 1
utimens a
utimens missing
symlink a s
chmod s 420
chown s 0 0
write 0 0 4096 9 0
chmod a 384
fsync 0
utimens a
fdatasync 0
fsync 0
close 0
chmod . 493
utimens .
sync
remount
stat a
sync
drop_caches
utimens a
utimens d
sync
remount
stat d
open 0 a ro
read 0 0 10000
close 0
""",
    "readdir": """
mkdir d
open 0 d/one rw,create
close 0
open 0 d/two rw,create
close 0
mkdir d/three
symlink one d/four
open 1 d ro,directory
readdir 1
fsync 1
readdir 1
unlink d/one
readdir 1
close 1
open 1 . ro,directory
readdir 1
fsync 1
close 1
open 1 d/two ro,directory
close 1
open 1 missing ro,directory
close 1
sync
drop_caches
open 1 d ro,directory
readdir 1
close 1
remount
open 1 . ro,directory
readdir 1
close 1
open 1 d ro,directory
readdir 1
stat d/two
readdir 1
unlink d/two
unlink d/four
rmdir d/three
readdir 1
rmdir d
readdir 1
close 1
""",
    "readdir-many": "mkdir d\n"
    + "".join(f"open 0 d/name-{n}-of-many rw,create\nclose 0\n" for n in range(120))
    + """
open 1 d ro,directory
readdir 1
close 1
sync
drop_caches
open 1 d ro,directory
readdir 1
readdir 1
close 1
remount
open 1 d ro,directory
readdir 1
close 1
""",
    "names-of-any-bytes": """
mkdir a%20folder
open 0 a%20folder/%C3%A4%FF%01 rw,create
write 0 0 300 1 0
close 0
symlink a%20folder/%C3%A4%FF%01 link%20here
readlink link%20here
open 0 link%20here ro
read 0 0 300
close 0
sync
remount
open 0 link%20here ro
read 0 0 300
close 0
rename a%20folder/%C3%A4%FF%01 %7F
stat %7F
unlink %7F
sync
""",
    "tmpfile": """
mkdir d
open 0 d rw,tmpfile
close 0
open 0 d rw,tmpfile
write 0 0 20000 4 0
fsync 0
link SLOT:0 d/named
close 0
stat d/named
open 0 d rw,tmpfile
write 0 0 5000 4 0
sync
link SLOT:0 late
write 0 5000 5000 5 0
fsync 0
close 0
open 0 missing rw,tmpfile
close 0
open 0 d rw,tmpfile
write 0 0 9000 6 0
sync
close 0
sync
remount
open 1 . ro,directory
readdir 1
close 1
""",
    "xattr": _FILE
    + """
setxattr a user.one 10 1 0
getxattr a user.one
getxattr a user.none
listxattr a
setxattr a user.two 300 2 0
listxattr a
setxattr a user.one 900 3 0
getxattr a user.one
fsync 0
removexattr a user.none
removexattr a user.two
setxattr a user.large 5000 3 0
setxattr a user.page 4096 3 0
setxattr missing user.one 1 1 0
mkdir d
setxattr d user.dir 40 1 0
sync
drop_caches
getxattr a user.page
listxattr a
setxattr a user.one 20 1 0
close 0
remount
listxattr a
getxattr a user.one
removexattr a user.one
listxattr d
unlink a
sync
""",
    "xattr-unlinked": _FILE
    + """
setxattr a user.one 100 1 0
setxattr a user.two 200 1 0
sync
unlink a
write 0 0 4096 2 0
sync
close 0
open 0 b rw,create
setxattr b user.one 100 1 0
close 0
unlink b
sync
open 0 c rw,create
setxattr c user.one 100 1 0
setxattr c user.two 100 1 0
close 0
remount
unlink c
sync
""",
    "mmap-read-window": """
open 0 a rw,create
write 0 0 400000 7 0
fsync 0
close 0
drop_caches
open 0 a ro
mmap 1 0 0 400000 ro
touch 1 0 4096
touch 1 0 200000
touch 1 396000 4000
touch 1 0 400000
munmap 1
close 0
drop_caches
open 0 a ro
mmap 1 0 8192 300000 private
close 0
touch 1 100000 1
touch 1 0 300000
munmap 1
drop_caches
open 0 a ro
mmap 1 0 0 400000 ro
touch 1 399000 1000
touch 1 200000 1
touch 1 100000 1
touch 1 0 1
drop_caches
touch 1 0 400000
fadvise 0 0 0 dontneed
read 0 0 400000
munmap 1
close 0
""",
    "mmap-refused": _FILE
    + """
mmap 1 0 0 4096 ro
munmap 1
mmap 1 0 0 4096 rw
munmap 1
mmap 1 0 0 40960 private
touch 1 0 40960
touch 1 0 12288
munmap 1
close 0
open 0 a ro
mmap 1 0 0 4096 rw
munmap 1
close 0
open 0 a wo
mmap 1 0 0 4096 private
touch 1 0 4096
munmap 1
close 0
mkdir d
open 0 d ro,directory
mmap 1 0 0 4096 private
munmap 1
close 0
""",
    "mmap-write": _FILE
    + """
truncate 0 40000
mmap 1 0 0 40000 rw
store 1 0 100 9 0
store 1 100 100 9 0
touch 1 12288 4096
store 1 12288 4096 9 0
msync 1 0 8192 async
msync 1 0 8192 sync
store 1 50 10 9 0
msync 1 0 40000 sync
read 0 0 40000
store 1 20000 12000 5 0
fsync 0
store 1 20000 8000 6 0
sync
store 1 0 4096 6 0
munmap 1
close 0
sync
drop_caches
open 0 a rw
mmap 1 0 4096 35904 rw
close 0
store 1 0 9000 1 0
unlink a
store 1 9000 9000 1 0
munmap 1
sync
""",
    "mmap-and-write": _FILE
    + """
fsync 0
mmap 1 0 0 12288 rw
write 0 0 4096 3 0
store 1 0 10 4 0
write 0 2000 4096 3 0
store 1 2000 10 4 0
truncate 0 5000
store 1 4096 100 4 0
truncate 0 3000
store 1 0 100 5 0
touch 1 0 12288
truncate 0 20000
store 1 8192 4096 5 0
fdatasync 0
read 0 0 20000
munmap 1
close 0
remount
open 0 a ro
read 0 0 20000
close 0
""",
    "mmap-tail": _FILE
    + """
mmap 1 0 0 12288 rw
store 1 9000 2000 1 0
read 0 0 20000
truncate 0 10500
read 0 0 20000
store 1 10000 2288 2 50
store 1 12287 1 2 50
fsync 0
truncate 0 11000
read 0 0 20000
store 1 10900 1000 3 0
write 0 13000 100 4 0
read 0 0 20000
store 1 10900 1000 5 0
sync
munmap 1
close 0
drop_caches
open 0 a ro
read 0 0 20000
close 0
remount
open 0 a rw
read 0 0 20000
mmap 1 0 0 16384 rw
store 1 13000 3000 6 0
truncate 0 9000
truncate 0 16000
store 1 15999 200 6 0
pause 40000000000
truncate 0 16300
read 0 0 20000
munmap 1
close 0
sync
""",
}
"""By name; all of it is measured."""

REFUSED = {
    "an extended attribute that is set on JFFS2": ("jffs2", _FILE + "setxattr a user.one 1 1 0\n"),
    "a symbolic link that leaves the file system": ("ubifs", "symlink ../a s\nopen 0 s ro\n"),
}
"""What the simulator refuses by name, with the file system and a program that asks for it."""
