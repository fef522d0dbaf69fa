"""From nothing to a debuggable PyTorch: a plan, its steps, and a manifest of what was made."""
