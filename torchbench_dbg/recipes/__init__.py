"""Recipes: scripted pdb and gdb sessions that teach one thing each, and check themselves."""
