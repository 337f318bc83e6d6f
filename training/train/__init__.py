"""Training an evaluator: one run, from a configuration to a folder.

- config: the YAML file of a run, checked
- init: the tokenizer, the encoder and the model that a run starts from
- run, trainer: one run; its batches and loss
- lora: adapters in the place of all weights
- estimate: what a run takes, before anything is loaded
"""
