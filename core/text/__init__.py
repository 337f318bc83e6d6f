"""Splitting of pasted text into steps, with formulas kept whole, and the table of equivalent signs.

Start with `split_solution` for steps and `signs.comparable` for signs.
"""
