"""The subcommands of `stepsight`, a module each.

A module has `add_parser`, and imports what is slow to load only when its command runs. What several share:

- cli: the command itself: every subcommand, and how errors end
- judging, processes, figures: what several of them share
"""
