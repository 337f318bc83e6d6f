"""Judgments in the store, and the evaluators that made them.

Start with `save_judgments` and `read_judgments`.
"""
