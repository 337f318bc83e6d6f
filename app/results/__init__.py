"""The Results page, which shows how each evaluator performs on each dataset.

Start with `results_page`. `Measurements` measures each dataset once and caches the result.
"""
