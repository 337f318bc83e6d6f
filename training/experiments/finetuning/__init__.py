"""Fine-tuning causal language models on subsets of a pool, and grading their answers.

Begin with `fine_tune`. A `Study` compares the subsets.
"""
