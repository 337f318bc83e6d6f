"""The synthetic corpus: worked solutions with planted errors, and later steps that expose them, labelled exactly.

Start with `generate`. A `Story` describes one kind of problem, written in YAML.
"""
