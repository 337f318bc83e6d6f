"""Importing, writing, reading and searching the traces in the store.

Begin with `import_file` and `get_trace`.
"""
