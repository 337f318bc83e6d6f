"""Data filtering: a pool of solutions is judged once, and matched subsets of it are chosen.

Begin with `filter_pool`.
"""
