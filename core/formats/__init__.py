"""Checkpoint formats, one module each.

A new one offers what `CheckpointFormat` asks for, and is a line in `recognition`.
"""
