"""Why a process died: the process that runs until it does, what is left of it, and what that says."""
