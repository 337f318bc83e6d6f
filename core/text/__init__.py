"""The text of a solution: pasted, cut into steps, formulas kept whole.

- split: a pasted solution into its steps, and what is no part of it
- openings: what a model writes around a solution
- sentences, formulas: sentences of a paragraph; LaTeX, drawings and code, which are never cut
"""
