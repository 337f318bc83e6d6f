"""A checkpoint in memory.

- evaluator: a model with its tokenizer, template and thresholds, in a folder
- checkpoint, location: that folder: config, tokenizer, safetensors; where it is, on this machine or a model hub
- assembly: that folder put together from what a repository has; pickles, adapter: weights that need work
- repositories: what public repositories do not say of themselves
- model: backbone and score head in one
- backbone, llada: the network of hidden states, from Transformers; LLaDA's names for its weights
- placement, devices: on which device, and in which type; whether that device can
"""
