"""Splitting pasted text into steps, with formulas kept whole.

Begin with `split_solution`.
"""
