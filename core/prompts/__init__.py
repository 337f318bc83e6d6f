"""A trace as tokens: the template of an evaluator, and the places where its scores are read."""
