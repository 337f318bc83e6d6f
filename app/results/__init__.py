"""The Results page, which shows how each evaluator performs on each dataset.

Start with `ResultsPage`. `Measurements` measures each dataset once and caches the result.
"""
