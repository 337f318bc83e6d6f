"""Metrics of what evaluators say against gold. A metric that has no value is NaN, with the reason."""
