"""The database: its address, its tables, and the open store.

Begin with `Store`, which gives the sessions that everything else reads and writes through.
"""
