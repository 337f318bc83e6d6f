"""Strict reading and atomic writing of files. Does not need PyTorch.

Start with `atomic_file` for writing and `read_rows` for reading.
"""
