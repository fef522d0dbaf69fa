"""One module a command: each decides what to do and gives the exit code."""
