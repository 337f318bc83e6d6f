"""Metrics of evaluators against gold, and of people among themselves. An undefined value is NaN, with the reason.

Begin with `StepTable`, the columns that all metrics read, and `METRICS`.
"""
