"""The database: its address, its tables, and the open store.

Begin with `Store`, which provides the sessions through which everything else reads and writes.
"""
