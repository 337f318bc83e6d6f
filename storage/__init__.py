"""The store: one database of traces, judgments and labels.

Begin with `open_store`, which gives a `Store`.
"""
