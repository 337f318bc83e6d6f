"""A store as one checked file, made while the store is in use, and restored from it.

Begin with `make_backup` and `restore_backup`.
"""
