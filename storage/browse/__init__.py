"""A dataset filtered, counted, sorted and paged.

Begin with `TraceFilter`, which says which traces are meant, and `browse`, which gives a page of them.
"""
