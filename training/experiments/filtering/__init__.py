"""Data filtering: a pool of solutions, each judged once, and the matched subsets chosen from it.

- pool, rows, candidate, check: the files of a pool, their rows, and looking through them first
- run, scoring, scores, ray_engine: scoring, here or by workers on Ray, and going on
- subsets, writing, manifest: which solutions each subset holds, as files, with a record of why
"""
