"""Checkpoint formats, one module each.

To add one, write a module with the names of `CheckpointFormat`, and add it to a list in `recognition`.
"""
