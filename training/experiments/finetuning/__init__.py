"""Fine-tuning causal language models on subsets of a pool, and what they then answer."""
