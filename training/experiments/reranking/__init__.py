"""Choosing among candidate solutions of a problem by an evaluator's scores.

Begin with `rank`.
"""
