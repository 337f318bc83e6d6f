"""The Browse page: a dataset as a filtered list, and single traces with their gold, evaluators and people's labels.

Begin with `browse_page`. A `Selection` is the part of the store that an address selects.
"""
