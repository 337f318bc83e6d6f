"""The synthetic corpus: worked solutions with planted errors and later evidence, labelled by construction.

- corpus: the stream of traces, each drawn from the seed and its own number
- families, stories: the problem families; a file of stories for each
- story: what a story is, how to write one, and its check when it is read
- formula, chain, mistakes: calculations, exact, rightly or with a planted error
- planner, quadratic, checks: everything that a trace of a problem may say
- solution: such a plan, and the trace assembled from it
- style, wording: its mathematics and its words
- drills: short traces of single equations
"""
