"""Measuring evaluators on datasets of the store.

Begin with `evaluate`. The figures themselves are in `core.metrics.figures`.
"""
