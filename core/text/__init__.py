"""Splitting pasted text into steps while keeping formulas whole, and the table of equivalent characters.

Start with `split_solution` for steps and `signs.comparable` for comparing texts.
"""
