"""Judgments in the store, and the evaluators that produced them.

Start with `save_judgments` and `read_judgments`.
"""
