"""gdb: found, driven, and asked for what only a debugger knows."""
