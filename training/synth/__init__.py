"""The synthetic corpus: worked solutions with planted errors and later evidence, labelled by construction.

Begin with `generate`. A `Story` describes one kind of problem, written in YAML.
"""
