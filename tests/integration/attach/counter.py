"""Computes something whose result is known, on several threads, and counts while it does."""

import sys
import threading
import time

total = 0
lock = threading.Lock()


def work(seed):
    global total
    value = seed
    for _ in range(int(sys.argv[2])):
        value = (value * 6364136223846793005 + 1442695040888963407) % 2**64
        if value % 1000 == 0:
            time.sleep(0.0001)
    with lock:
        total ^= value


threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
for thread in threads:
    thread.start()
open(sys.argv[1], "w").close()
for thread in threads:
    thread.join()
print(total)
