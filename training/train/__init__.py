"""Training an evaluator."""
