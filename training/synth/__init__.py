"""The synthetic corpus: worked solutions with planted errors and later evidence, labelled by construction.

- corpus: the stream of traces, each drawn from the seed and its own number
- families, drills: the problem families; short traces of single equations
- story, chain, block, formula: a problem as a chain of calculations
- plan, arithmetic, inspection, plant: everything a trace may say: steps, checks, planted errors
- weave, style, wording, verdict: a plan as a trace: its mathematics and its words
"""
