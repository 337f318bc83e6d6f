"""Traces to probabilities: the scorer, its forward passes, and what it says of evidence."""
