"""Entry point of the inferior: `python session.py CONTROL_FD EVENTS_FD RING_FD NAMES_FD HOST_PID`, or
`python session.py serve SOCKET_FD HOST_PID` for the one of `server.py`, or
`python session.py debug TOKEN CONTROL_FD ...` for the program of `debugged.py`.

The host writes JSON lines to CONTROL_FD and reads JSON lines from EVENTS_FD; RING_FD is the memory file
of `ring.py`, NAMES_FD the one of `names.py`. The conversation itself is in `conversation.py`.

The modules beside this file are imported as a package of a private name, and this directory leaves
sys.path at once, so that neither `import names` nor `import session` of the user's code can find ours.
"""

from __future__ import annotations

import sys

PACKAGE = "_tdbg_inferior"


def main() -> None:
    """Make the private package, import it, give sys.path the entry that `python -c` would have, and
    converse.
    """
    directory = __file__.rpartition("/")[0] or "."
    if sys.path and sys.path[0].rstrip("/") == directory.rstrip("/"):
        del sys.path[0]
    package = type(sys)(PACKAGE)
    package.__path__ = [directory]
    sys.modules[PACKAGE] = package
    # Imported before '' enters sys.path: a json.py in the user's directory must not break this side.
    if sys.argv[1] == "serve":
        __import__(PACKAGE + ".server", fromlist=["main"]).main(sys.argv[2:])
    if sys.argv[1] == "debug":
        __import__(PACKAGE + ".debugged", fromlist=["main"]).main(sys.argv[2:])
    __import__(PACKAGE + ".conversation", fromlist=["main"]).main(sys.argv[1:])


if __name__ == "__main__":
    main()
