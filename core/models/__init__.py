"""A checkpoint in memory.

- evaluator: a model with its tokenizer, template and thresholds, in a folder
- checkpoint: that folder: config, tokenizer, safetensors
- model: backbone and score head in one
- backbone, llada: the network of hidden states, from Transformers; LLaDA's names for its weights
- placement: on which device, and in which type
"""
