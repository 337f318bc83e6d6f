"""Training an evaluator: one run, from a configuration to a folder.

- config: the YAML file of a run, checked
- init: the model and the encoder that a run starts from
- run, trainer: one run; its batches and loss
- estimate: what a run takes, before anything is loaded
- history, held_out: what a run logged, with curves; how an evaluator does on synthetic traces never seen
"""
