"""The evaluators of this server, and scoring with them.

- evaluators, batcher, line, limits: evaluators loaded once; requests that come together scored together, those of
  each client in turn; how much may be computed for one
- loading: large evaluators in memory one at a time, when they are asked for
- gallery_seed: the gallery in the store
- placement_options: options of commands that place an evaluator
"""
