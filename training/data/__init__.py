"""Training data: sources, mixture, leakage checks and examples.

Begin with `Data`, which holds the sources of a configuration, and `build_examples`.
"""
