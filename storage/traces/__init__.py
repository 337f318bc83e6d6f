"""Traces in the store: imported, written, read and searched.

Begin with `import_file` and `get_trace`.
"""
