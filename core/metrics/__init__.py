"""Metrics of judgments against gold, and of people against each other; without a value they are NaN, with a reason.

table: gold and scores as columns; items: what a two-class metric is computed from, made by reasoneval (the paper's
protocol) and prmscore. binary, ternary, first_error, calibration, position: metrics of one evaluator. paired: two
evaluators on the same items. ratings, kappa, agreement: people. bootstrap: intervals.
"""
