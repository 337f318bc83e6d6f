"""Filtering, counting, sorting and paging the traces of a dataset.

Start with `TraceFilter`, which selects traces, and `browse`, which returns one page of them.
"""
