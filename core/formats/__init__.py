"""Checkpoint formats, each in its own module.

To add a format, write a module that defines the names in `CheckpointFormat`, and add it to a list in `recognition`.
"""
