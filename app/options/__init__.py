"""The commands' parsers: how a command and its options are declared, and options that several commands share.

Does not need PyTorch.
"""
