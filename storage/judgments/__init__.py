"""Judgments in the store, the evaluators that made them, and the jobs that will."""
