"""Metrics of evaluators against gold, and of people among themselves.

A metric that is undefined is NaN and says why. Begin with `StepTable`, the columns that all metrics read, and with
`METRICS`.
"""
