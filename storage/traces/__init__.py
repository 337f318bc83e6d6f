"""Traces in the store.

- imports, writer: a file into the store, whole or not at all; traces into a dataset
- queries, search: reading datasets and traces; searching their texts
- columns: a dataset's traces as columns, to filter and sort by
"""
