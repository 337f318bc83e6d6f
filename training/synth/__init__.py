"""The synthetic corpus: worked solutions with planted errors and later evidence, labelled by construction."""
