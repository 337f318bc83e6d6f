"""The Browse page: a dataset as a filtered list, and single traces with gold labels, evaluators' verdicts and
people's labels.

Start with `BrowsePages`. A `Selection` is the part of the store that a URL selects.
"""
