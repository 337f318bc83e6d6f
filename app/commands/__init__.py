"""The subcommands of `stepsight`, one module each.

A module has `add_parser`, and imports what is slow to load only when its command runs.
"""
