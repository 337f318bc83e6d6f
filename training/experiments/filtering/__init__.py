"""Data filtering: scoring a pool of solutions once and choosing subsets of equal size. Start with `filter_pool`."""
