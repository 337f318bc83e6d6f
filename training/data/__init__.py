"""Training data: sources, mixtures, leakage checks and examples. Start with `Data` and `build_examples`."""
