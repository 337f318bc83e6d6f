"""The store: one database that holds traces, judgments and labels.

Start with `open_store`, which returns a `Store`.
"""
