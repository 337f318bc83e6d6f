"""Files that are read strictly and written atomically. Needs no PyTorch.

Begin with `atomic_file` for writing and `read_rows` for reading.
"""
