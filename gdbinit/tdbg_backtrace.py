"""Runs inside gdb (12 to 18), attached to a stopped process: walks stacks and writes them as one JSON line.

The environment variable TDBG_BACKTRACE holds the request: {"descriptor", "thread", "all_threads", "limit", "seconds",
"variables", "libraries", "past_prologue", "tensor_layout", "index_cache"}; torchbench_dbg/debugger/backtrace.py says
what they mean. Symbols are read only of the libraries that stand in the stack, and of large ones only for their debug
information: tdbg_unwinder goes up from the others without.
"""

import json
import os
import re
import sys
import time

import gdb

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tdbg_printers
import tdbg_step
import tdbg_torch
import tdbg_unwinder
import tdbg_values

MOST_LIBRARIES = 64  # symbol reads before the walk gives up

SETTINGS = (
    "set may-call-functions off",
    "set print static-members off",
    "set style enabled off",
)


class Walk:
    """One request, answered thread by thread."""

    def __init__(self, request, process):
        self.request, self.process = request, process
        self.limit = request["limit"]
        self.deadline = time.monotonic() + request["seconds"]
        self.warnings = []

    def warn(self, text):
        if text not in self.warnings:
            self.warnings.append(text)

    def is_late(self):
        if time.monotonic() < self.deadline:
            return False
        self.warn("time is up: the rest of the stacks and variables is left out")
        return True

    def threads(self):
        """The thread that was asked for, then the others if they are wanted too."""
        wanted = self.request["thread"]
        threads = sorted(gdb.selected_inferior().threads(), key=lambda thread: kernel_id(thread) != wanted)
        if not threads or kernel_id(threads[0]) != wanted:
            raise ValueError("thread %d is not there" % wanted)
        for thread in threads if self.request["all_threads"] else threads[:1]:
            thread.switch()
            interesting = kernel_id(thread) == wanted
            self.load_symbols_of_stack()
            if interesting and self.request["past_prologue"] and not self.is_late():
                tdbg_step.leave_prologue()
            frames = [self.describe(*each, interesting) for each in self.frames()]
            yield {"native_id": kernel_id(thread), "name": thread.name, "frames": frames}

    def load_symbols_of_stack(self):
        """Have gdb read what it must of the libraries in the selected thread's stack, innermost frame first."""
        for _ in range(MOST_LIBRARIES):
            image = self.first_unread_image()
            if image is None or self.is_late():
                return
            self.process.read_by_gdb.add(image.path)
            name = gdb.solib_name(image.pc)
            if name is not None:
                gdb.execute("sharedlibrary ^%s$" % re.escape(name), to_string=True)

    def first_unread_image(self):
        for _, frame in self.frames():
            image = self.process.image(frame.pc())
            if image is not None and self.process.must_be_read(image):
                image.pc = frame.pc()
                return image
        return None

    def frames(self):
        """(level, frame) from the innermost outwards, as far as they can be believed."""
        frame = gdb.newest_frame()
        for level in range(self.limit):
            if frame is None:
                return
            if level > 0 and not self.process.is_code(frame.pc()) and frame.newer().type() != gdb.SIGTRAMP_FRAME:
                self.warn("the stack can't be followed beyond its frame %d" % (level - 1))
                return
            yield level, frame
            frame = older(frame)
        if frame is not None and older(frame) is not None:
            self.warn("more than %d frames: the outer ones are left out" % self.limit)

    def describe(self, level, frame, interesting):
        pc = frame.pc()
        image = self.process.image(pc)
        sal = frame.find_sal()
        function = frame.function()
        record = {
            "level": level,
            "pc": pc,
            "function": function.print_name if function is not None else frame.name() or self.name(image, pc, level),
            "library": image.path if image is not None else None,
            "offset_in_library": pc - image.headers.bias if image is not None and image.headers is not None else None,
            "file": sal.symtab.fullname() if sal.symtab is not None else None,
            "line": sal.line if sal.symtab is not None else None,
            "inline": frame.type() == gdb.INLINE_FRAME,
            "arguments": [],
            "locals": [],
        }
        if interesting and self.request["variables"] and function is not None and not self.is_late():
            record["arguments"], record["locals"] = tdbg_values.variables(frame, self.is_late)
        return record

    def name(self, image, pc, level):
        """The name of a function that gdb does not know, by the library's symbol table."""
        wanted = self.process.wanted
        if image is None or self.is_late() or not (wanted is None or image.path in wanted):
            return None
        found = image.function(pc if level == 0 else pc - 1)
        return tdbg_unwinder.demangled(found[1]) if found is not None and found[1] else None


def kernel_id(thread):
    return thread.ptid[1] or thread.ptid[0]


def older(frame):
    """The calling frame; None at the end of the stack and where it can't be unwound."""
    try:
        return frame.older()
    except gdb.error:
        return None


def prepare(request):
    """Settings that not every gdb has; none of them is needed for a right answer."""
    settings = list(SETTINGS)
    if request["index_cache"]:
        settings.append("set index-cache directory " + request["index_cache"])
        settings.append("set index-cache enabled on")
    for setting in settings:
        try:
            gdb.execute(setting, to_string=True)
        except gdb.error:
            if setting == "set index-cache enabled on":
                gdb.execute("set index-cache on", to_string=True)  # gdb 12 and before


def main():
    if not gdb.selected_inferior().pid:
        return  # gdb could not attach, and has said why
    request = json.loads(os.environ["TDBG_BACKTRACE"])
    tdbg_torch.use_layout(request["tensor_layout"])
    tdbg_printers.register()
    answer = {"gdb": gdb.VERSION, "threads": [], "warnings": [], "error": None}
    try:
        prepare(request)
        process = tdbg_unwinder.Process(gdb.selected_inferior().pid, request["libraries"])
        gdb.unwinder.register_unwinder(None, tdbg_unwinder.TableUnwinder(process), replace=True)
        walk = Walk(request, process)
        answer["warnings"] = walk.warnings
        for thread in walk.threads():
            answer["threads"].append(thread)
    except (gdb.error, gdb.MemoryError, RuntimeError, ValueError, OSError) as error:
        answer["error"] = str(error)
    with os.fdopen(request["descriptor"], "w") as channel:
        channel.write(json.dumps(answer) + "\n")


main()
