"""Threads in different places, whose Python stacks the program itself writes down, all standing still."""

import asyncio
import json
import sys
import threading
import time


def generator(gate):
    gate.wait()
    yield 1


class Worker:
    def run(self, gate):
        def inner():
            return list(generator(gate))

        return inner()


def deep(gate, levels):
    if levels == 0:
        gate.wait()
        return 0
    return deep(gate, levels - 1) + 1


def sorts(gate):
    sorted([2, 1], key=lambda value: (gate.wait(), value)[1])


async def waits(gate):
    await asyncio.sleep(0)
    gate.wait()


def stacks():
    """native id of each thread -> its frames, innermost first."""
    named = {thread.ident: thread.native_id for thread in threading.enumerate()}
    found = {}
    for ident, frame in sys._current_frames().items():
        frames = []
        while frame is not None:
            code = frame.f_code
            frames.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
            frame = frame.f_back
        found[named[ident]] = frames
    return found


def main():
    gate = threading.Event()
    targets = [
        (Worker().run, (gate,)),
        (deep, (gate, 150)),
        (sorts, (gate,)),
        (lambda: asyncio.run(waits(gate)), ()),
    ]
    for target, arguments in targets:
        threading.Thread(target=target, args=arguments, daemon=True).start()
    time.sleep(0.5)
    with open(sys.argv[1] + ".part", "w") as file:
        json.dump(stacks(), file)
    import os

    os.replace(sys.argv[1] + ".part", sys.argv[1])
    time.sleep(1000)


main()
