"""Stress tests: changing solutions by rule and checking whether an evaluator's verdicts move as they must.

Start with `variant.Transform`; `stress.StressTest` applies transforms, judges the variants and measures evaluators.
"""
