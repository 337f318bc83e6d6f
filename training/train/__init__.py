"""Training an evaluator, in one run from a configuration to a folder.

Begin with `TrainConfig` and `train`.
"""
