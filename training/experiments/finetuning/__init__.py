"""Fine-tuning causal language models on subsets of a pool, and grading their answers.

Begin with `fine_tune`; a `Study` compares the subsets.
"""
