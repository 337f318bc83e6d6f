"""Importing, writing, reading and searching the traces in the store.

Start with `import_file` and `get_trace`.
"""
