"""The Browse page: a dataset as a filtered list, and one trace with its gold, evaluators and people.

Begin with `browse_page`; a `Selection` is the part of the store that an address selects.
"""
