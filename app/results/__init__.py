"""The Results page, which shows how each evaluator performs on each dataset.

Begin with `results_page`. `Measurements` measures each dataset once and keeps the result.
"""
