"""Browsing a dataset: the address, its conditions, the list of traces, one trace with its evaluators."""
