"""Commands that train evaluators and run experiments with them."""
