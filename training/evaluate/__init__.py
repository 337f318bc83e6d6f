"""Measuring evaluators on stored datasets. Start with `evaluate`. `core.metrics.figures` computes the figures."""
