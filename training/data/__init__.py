"""What an evaluator learns from.

- sources_config, sources: the `data` of a configuration; reading the traces it names
- mixture, leakage: the traces of a run by weight; benchmark problems among them
- transforms, corruption: where a trace ends and what its labels supervise; planted errors in real solutions
- examples: encoded traces with labels, in batches
"""
