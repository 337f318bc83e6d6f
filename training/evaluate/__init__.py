"""Measuring evaluators on datasets of the store.

Begin with `evaluate`; the figures themselves are in `core.metrics.figures`.
"""
