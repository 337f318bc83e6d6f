"""Training an evaluator from a configuration. Start with `TrainConfig` and `train`."""
