"""Choosing among candidate solutions of a problem by what an evaluator says of their steps."""
