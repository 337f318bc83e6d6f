"""The commands' parsers: how a command and its options are declared, and options that several commands share.

Begin in `command`. Does not need PyTorch.
"""
