"""The database: its address, its tables, and the open store.

Start with `Store`. All other code reads and writes through its sessions.
"""
