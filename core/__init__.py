"""The evaluator and its arithmetic, without a database, web pages or a training loop.

Start with `Trace`, `StepScores` and `Judgment`, which every layer uses.
"""
