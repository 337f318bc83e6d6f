"""Training data: sources, mixture, leakage checks and examples.

Begin with `Data`, the sources of a configuration, and `build_examples`.
"""
