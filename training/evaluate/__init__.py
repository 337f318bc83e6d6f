"""Measuring evaluators on datasets of the store.

- evaluation, metrics: what evaluators reach on a dataset; every figure that a table can show
- diagnostics: by class, by step, and what later steps change
- calibration: choosing a threshold on a validation dataset
- verification: a published figure, measured again
- gallery, held_out: how an evaluator does on the shipped traces, and on synthetic ones that it never saw
- grading: whether an answer is right, by math-verify
"""
