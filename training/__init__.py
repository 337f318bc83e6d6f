"""Training and measuring evaluators, and the experiments of the paper.

Begin with `train` for a training run and `evaluate` for measuring.
"""
