"""Training an evaluator: one run, from a configuration to a folder.

Begin with `TrainConfig` and `train`.
"""
