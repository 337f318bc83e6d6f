"""Rows of a file, whatever its kind: containers, typed fields, and what a kind of file is.

Begin with `kind.FileKind`.
"""
