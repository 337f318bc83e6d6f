"""Traces into judgments.

Begin with `Scorer`, which takes any evaluator, and `Client`, which has a server do the same.
"""
