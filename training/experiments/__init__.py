"""The paper's experiments: what only they do.

- grid: sizes x data x masks x seeds
- filtering: a pool of solutions, and matched subsets of it
- finetuning: language models fine-tuned on subsets, their answers and grades
- reranking: choosing among candidate solutions
"""
