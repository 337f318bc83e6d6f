"""Stress tests: changing solutions by rule and checking whether an evaluator's verdicts move as they must.

Start with `transforms`; `stress_test.StressTest` applies them and measures evaluators on the variants.
"""
