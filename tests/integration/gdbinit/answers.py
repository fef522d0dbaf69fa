"""Sourced in gdb: executes the commands that TDBG_TEST_COMMANDS lists, and writes what each printed as JSON.

`{ADDRESS of NAME}`, `{OBJECT of NAME}` and `{NODE of NAME}` stand for a tensor in TDBG_TEST_FACTS, `*` for each of them.
"""

import json
import os
import re

import gdb


def main():
    with open(os.environ["TDBG_TEST_FACTS"]) as file:
        tensors = json.load(file)["tensors"]
    with open(os.environ["TDBG_TEST_COMMANDS"]) as file:
        commands = json.load(file)
    answers = {}
    for command in (
        each.replace("*}", name + "}") for each in commands for name in (tensors if "*}" in each else [""])
    ):
        filled = re.sub(r"{(\w+) of ([^}]*)}", lambda found: hex(tensors[found[2]][found[1].lower()]), command)
        try:
            answers[command] = gdb.execute(filled, to_string=True)
        except gdb.error as error:
            answers[command] = f"error: {error}"
    with open(os.environ["TDBG_TEST_ANSWERS"], "w") as file:
        json.dump(answers, file)


main()
