"""Fine-tuning causal language models on subsets of a pool, and what they then answer.

- study, experiment: the YAML file of a study; running it
- recipe, run, trainer, models: fine-tuning a language model with TRL
- examples: the rows it learns from, as token ids
- math500, generation: problems and what a model reaches on them; its greedy answers
- results, report, tables, plots: what was reached
"""
