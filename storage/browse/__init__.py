"""Filtering, counting, sorting and paging the traces of a dataset.

Begin with `TraceFilter`, which selects traces, and `browse`, which returns a page of them.
"""
