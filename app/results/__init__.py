"""The Results page: what evaluators reach on datasets, measured once.

- page, results_address: the page and its address
- overview, dataset_results: every evaluator on every dataset; everything of one dataset
- measured, computations: what is measured, once, in a thread of its own
- result_files: tables and the report as files
"""
