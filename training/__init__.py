"""Training and measuring evaluators, and the paper's experiments.

Begin with `train` for a training run and `evaluate` for measuring.
"""
