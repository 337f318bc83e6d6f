"""Scoring, which turns traces into judgments.

Start with `Scorer`, which takes any evaluator, or with `Client`, which lets a server do the work.
"""
