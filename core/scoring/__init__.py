"""Turning traces into judgments.

Begin with `Scorer`, which takes any evaluator, and `Client`, which lets a server do the same.
"""
