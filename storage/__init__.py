"""The store: one database of traces, judgments and labels.

Begin with `open_store`, which returns a `Store`.
"""
