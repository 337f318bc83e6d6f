"""Backing up a store to a single verified file, even while the store is in use, and restoring it from that file.

Start with `make_backup` and `restore_backup`.
"""
