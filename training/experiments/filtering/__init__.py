"""Data filtering: a pool of solutions, each judged once, and the matched subsets chosen from it.

- pool: the files of a pool, their rows as solutions
- run, scoring, scores: the check and the scores of a pool, here or by workers on Ray, and going on
- subsets, output: which solutions each subset holds; as files, with a manifest of why
"""
