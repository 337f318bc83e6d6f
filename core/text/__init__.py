"""Reading texts: splitting pasted ones into steps with formulas kept whole, and the table of equivalent signs.

Begin with `split_solution` for the one and `signs.comparable` for the other.
"""
