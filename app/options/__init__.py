"""Command-line options that several commands share, and the processes that the server starts.

Begin in `shared`. Does not need PyTorch.
"""
