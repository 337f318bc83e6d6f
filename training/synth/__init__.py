"""The synthetic corpus: worked solutions with planted errors and later evidence, labelled by construction.

Begin with `generate`; a `Story` is one kind of problem, written in YAML.
"""
