"""Looks at a running process: it stands still for some milliseconds, and goes on while its stacks are read."""
