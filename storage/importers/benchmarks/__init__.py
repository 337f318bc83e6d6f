"""The files of public benchmarks, one module each.

Begin with `processbench`, the shortest. `storage.importers` lists them with the other kinds of file.
"""
