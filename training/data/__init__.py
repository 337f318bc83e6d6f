"""Training data: sources, mixtures, leakage checks and examples. Start with `Data`, the sources named in a
configuration, and `build_examples`."""
