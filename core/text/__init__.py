"""Pasted text as steps, with formulas kept whole.

Begin with `split_solution`.
"""
