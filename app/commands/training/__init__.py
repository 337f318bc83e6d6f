"""Commands that train, and experiments with what was trained: train, grid, filter, filter-study, sft, math500."""
