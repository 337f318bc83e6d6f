"""Fine-tuning causal language models on subsets of a pool, and grading their answers. Start with `fine_tune`.

A `Study` compares several subsets.
"""
