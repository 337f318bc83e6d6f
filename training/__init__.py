"""Training and evaluating evaluators, and the experiments of the paper. Start with `train` and `evaluate`."""
