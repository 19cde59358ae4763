"""A ring of 256 event records of 256 bytes: one is written and synced each 15 s, for a day."""

import os
import time

RECORDS, BYTES = 256, 256
ring = os.open("events", os.O_RDWR | os.O_CREAT, 0o644)
for number in range(5760):
    record = f"event={number} zone={number * 7919 % 97} score={number * 104729 % 1009}\n".encode()
    os.pwrite(ring, record + os.urandom(BYTES - len(record)), number % RECORDS * BYTES)
    os.fsync(ring)
    time.sleep(15)
os.close(ring)
