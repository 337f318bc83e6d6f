"""Checkpoint formats, each a class that recognises its layout and loads it.

To add a format, write a `CheckpointFormat` beside the one that it is like, and add it to `FORMATS` in
`recognition`.
"""
