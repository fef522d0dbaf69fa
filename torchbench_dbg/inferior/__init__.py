"""What runs inside the target interpreter.

Standard library only, Python 3.9 and later, nothing of the host is imported: the target may be any
environment, with torchbench_dbg not installed in it and with torch perhaps broken. The host starts
`session.py` by path; see its docstring for the protocol.
"""
