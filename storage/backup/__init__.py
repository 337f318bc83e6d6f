"""Backing up a store to one checked file, even while the store is in use, and restoring it from that file.

Begin with `make_backup` and `restore_backup`.
"""
