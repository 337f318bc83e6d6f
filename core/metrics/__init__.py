"""Metrics that compare evaluators with gold labels, and people with each other.

An undefined metric is NaN and states the reason. Start with `StepTable`, which holds the columns that all metrics
read, and `figures`.
"""
