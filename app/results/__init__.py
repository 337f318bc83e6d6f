"""The Results page: what evaluators reach on datasets, measured once.

- page, address: the page and its address
- overview, dataset: every evaluator on every dataset; everything of one dataset
- measurements, computations: what is measured, once, in a thread of its own
- files: tables and the report as files
"""
