"""Programs of version 2 about names that file systems refuse, keep or make themselves."""

from __future__ import annotations

__all__ = ["ABOUT_NAMES"]

_FILE = """
open 0 a rw,create
write 0 0 10000 7 0
"""

ABOUT_NAMES = {
    "dot": """
open 0 b rw,create
close 0
mkdir d
rename . x
rename b .
rename missing .
rename . .
rmdir .
unlink .
mkdir .
link b .
link . x
symlink b .
open 0 . rw,create
close 0
open 0 . ro,create,excl
close 0
rmdir d
rmdir .
sync
readlink .
stat .
""",
    "long-names": f"""
mkdir {"n" * 254}
mkdir {"n" * 255}
open 0 {"m" * 254} rw,create
write 0 0 100 1 0
close 0
open 0 {"m" * 255} rw,create
close 0
open 0 {"m" * 255} ro
close 0
stat {"m" * 255}
stat {"m" * 255}/x
link {"m" * 254} {"k" * 255}
symlink x {"k" * 255}
rename {"m" * 254} {"k" * 255}
rename {"k" * 255} {"m" * 254}
unlink {"m" * 255}
rmdir {"n" * 255}
chmod {"m" * 255} 448
rename {"m" * 254} {"n" * 254}/{"o" * 254}
sync
drop_caches
drop_caches
drop_caches
stat {"n" * 254}/{"o" * 254}
rmdir {"n" * 254}
unlink {"n" * 254}/{"o" * 254}
rmdir {"n" * 254}
sync
""",
    "lost-and-found": _FILE
    + """
stat lost%2Bfound
chmod lost%2Bfound 448
mkdir lost%2Bfound
open 1 lost%2Bfound/x rw,create
write 1 0 5000 2 0
close 1
sync
open 1 . ro,directory
readdir 1
close 1
rename lost%2Bfound y
mkdir e
rename e lost%2Bfound
rename a lost%2Bfound
rmdir lost%2Bfound
unlink lost%2Bfound
unlink lost%2Bfound/x
rename e lost%2Bfound
rmdir lost%2Bfound
rename a lost%2Bfound/a
fsync 0
utimens lost%2Bfound
open 1 lost%2Bfound ro,directory
readdir 1
fsync 1
close 1
drop_caches
stat lost%2Bfound/a
chmod lost%2Bfound 493
close 0
mkdir lost%2Bfound/d
sync
remount
stat lost%2Bfound
stat lost%2Bfound/a
stat lost%2Bfound/d
open 1 . ro,directory
readdir 1
close 1
open 1 lost%2Bfound/a rw,create
close 1
sync
""",
    "removed-directories": """
mkdir d
mkdir d/e
open 0 d/e/file-with-a-long-name rw,create
write 0 0 5000 1 0
open 1 d/e ro,directory
unlink d/e/file-with-a-long-name
rmdir d/e
rmdir d
mkdir d
open 2 d/x rw,create
unlink d/x
rmdir d
sync
write 0 5000 5000 2 0
drop_caches
fsync 0
fsync 1
readdir 1
close 1
close 0
sync
close 2
mkdir d
mkdir f
open 0 d/.lock rw,create
open 1 f/.lock rw,create
rename d g
unlink g/.lock
unlink f/.lock
rename g f
sync
close 1
sync
rmdir f
close 0
mkdir d
open 0 d/mapped rw,create
write 0 0 5000 3 0
mmap 0 0 0 4096 ro
close 0
unlink d/mapped
rmdir d
touch 0 0 4096
munmap 0
mkdir d
mkdir d/e
open 0 d/e rw,tmpfile
write 0 0 5000 4 0
rmdir d/e
rmdir d
close 0
sync
""",
    "full-directories": """
mkdir d
mkdir d/a-directory-with-a-long-name
open 0 d/a-directory-with-a-long-name/x rw,create
close 0
mkdir another-directory-with-a-long-name
sync
drop_caches
rmdir d/a-directory-with-a-long-name
rename another-directory-with-a-long-name d/a-directory-with-a-long-name
rmdir d
drop_caches
rename d/a-directory-with-a-long-name d
rename another-directory-with-a-long-name d
unlink d/a-directory-with-a-long-name/x
rename another-directory-with-a-long-name d/a-directory-with-a-long-name
rmdir d/a-directory-with-a-long-name
rmdir d
sync
""",
    "direct": _FILE
    + """
fsync 0
close 0
open 0 a ro,direct
read 0 0 4096
close 0
open 0 a rw,trunc,direct
close 0
open 0 b rw,create,direct
write 0 0 4096 1 0
close 0
stat b
open 0 . ro,directory,direct
close 0
open 0 missing ro,direct
close 0
mkdir d
open 0 d rw,tmpfile,direct
close 0
sync
open 0 a ro
read 0 0 10000
close 0
unlink b
sync
""",
    "links-outside": """
mkdir d
symlink /etc/hostname s
symlink ../../usr/lib/x up
symlink ../../usr d/up
symlink /nowhere/at/all n
stat s
readlink s
open 0 s ro
close 0
open 0 up ro
close 0
chmod s 420
open 0 d/up/lib/x ro,create
close 0
open 0 n rw,create
close 0
stat n/x
mkdir n
unlink s
rename n d/m
readlink d/m
sync
drop_caches
open 0 d/m/x ro
close 0
stat up
sync
""",
}
"""By name; all of it is measured."""
