"""An evaluator's card: how far the evaluator can be trusted on a dataset, computed once and written in many ways.

Start with `make_card`.
"""
