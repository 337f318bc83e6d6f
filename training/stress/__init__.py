"""Stress tests: changing solutions by rule and checking whether an evaluator's verdicts move as they must.

Start with `variant.Transform`; `stress_test.StressTest` applies transforms and measures evaluators on the variants.
"""
