"""Scoring, which turns traces into judgments.

Start with `Scorer`, which takes any evaluator, or with `Client`, which has a server do the work.
"""
