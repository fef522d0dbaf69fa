"""Computes the same on several threads again and again, until the file STOP is there: `counter.py READY STOP`."""

import os
import sys
import threading
import time


def once():
    results = []

    def work(seed):
        value = seed
        for _ in range(100_000):
            value = (value * 6364136223846793005 + 1442695040888963407) % 2**64
            if value % 1000 == 0:
                time.sleep(0.0001)
        results.append(value)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(results)


expected = once()
open(sys.argv[1], "w").close()
rounds = same = 0
while not os.path.exists(sys.argv[2]):
    rounds += 1
    same += once() == expected
print(rounds, same)
