"""Commands that train evaluators, and that run experiments with them."""
