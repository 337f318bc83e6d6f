"""Judgments in the store, and the evaluators that made them.

Begin with `save_judgments` and `read_judgments`.
"""
