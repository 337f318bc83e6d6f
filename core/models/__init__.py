"""A checkpoint in memory.

- abstract: what every evaluator has, with weights or without
- evaluator: a model with its tokenizer, template and thresholds, in a folder
- checkpoint, location: that folder: config, tokenizer, safetensors; where it is, on this machine or a hub
- assembly: that folder put together from what a repository has; pickles, adapter: weights that need work
- memory: what this machine has of it, and what an evaluator takes
- model: backbone and score head in one
- backbone: the network of hidden states; decoder: those of Llama's family on a processor; pretrained: all others,
  from Transformers; llada: LLaDA's names for its weights; products: with weights as they lie
- placement, devices: on which device, and in which type; whether that device can
- dtypes: the type where none is asked for
"""
