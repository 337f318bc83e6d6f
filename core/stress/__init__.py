"""Stress tests: solutions that are changed by rule, and whether an evaluator's verdicts move as they must.

Start with `variant.Transform`; `stress.stress_test` applies all transforms, judges what comes out and measures it.
"""
