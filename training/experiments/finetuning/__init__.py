"""Fine-tuning causal language models on subsets of a pool, and what they then answer.

- study, experiment, cell: the YAML file of a study; running it; one part of it
- recipe, run, trainer, models: fine-tuning a language model with TRL
- subset, examples: the rows it learns from, as token ids
- math500, problems, generation, answers, grading: greedy answers to problems, and their grades
- results, report, tables, plots: what was reached
"""
