"""Measuring evaluators on datasets of the store.

Begin with `evaluate`; every figure that a table can show is defined in `metrics`.
"""
