"""The Results page: what each evaluator reaches on each dataset.

Begin with `results_page`; `Measurements` measures once and keeps the result.
"""
