"""Rows of a file, whatever its kind: containers, typed fields, and the definition of a kind of file.

Begin with `kind.FileKind`.
"""
