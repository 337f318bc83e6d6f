"""Data filtering: a pool of solutions, each judged once, and the matched subsets chosen from it."""
