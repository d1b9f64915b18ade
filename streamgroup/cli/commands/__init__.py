"""The commands, one file each, found by file name: `Options` (the flags) and `run` (its docstring is the help)."""
