"""The evaluator and its computations, independent of the database, the web pages and the training loop.

Start with `Trace`, `StepScores` and `Judgment`, which every layer uses.
"""
