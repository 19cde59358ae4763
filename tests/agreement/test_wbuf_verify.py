"""JFFS2 that reads its write-buffer back: the simulator and a kernel that is built to."""
