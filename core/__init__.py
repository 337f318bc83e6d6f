"""The evaluator and its arithmetic: no database, no web page, no training loop.

Begin with `Trace`, `StepScores` and `Judgment`, which every layer uses.
"""
