"""The Results page: what evaluators reach on datasets, measured once.

- page, address: the page and its address
- overview, dataset: every evaluator on every dataset; everything of one dataset
- measurements: what is measured, once
- files: tables and the report as files
"""
