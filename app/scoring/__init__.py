"""The evaluators of this server, and scoring with them.

- evaluators, batcher: evaluators loaded once; requests that come together scored together
- loading: large evaluators in memory one at a time, when they are asked for
- gallery_seed: the gallery in the store
- placement_options: options of commands that place an evaluator
"""
