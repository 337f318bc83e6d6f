"""Data filtering: a pool of solutions, judged once, and matched subsets of it.

Begin with `filter_pool`.
"""
