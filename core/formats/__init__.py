"""Checkpoint formats, one module each.

To add a format, write a module with the names of `CheckpointFormat`, and add it to a list in `recognition`.
"""
