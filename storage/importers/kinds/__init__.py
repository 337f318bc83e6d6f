"""The kinds of files with traces, one module each: a docstring with an example row, `parse`, and `KIND`. Begin with
`processbench`, which is typical; `storage.importers` finds the kind of a name or a row."""
