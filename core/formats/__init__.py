"""Checkpoint formats, one module each; a new one is a module and a line in `loading`.

- loading: recognising the format of a folder, and loading an evaluator from it
- describing: what a fetched evaluator is, by loading it once
- format: what the module of a format has to offer
- stepsight: our own, and any backbone with a score head
- reasoneval, math_shepherd, qwen_prm: three public families
- token_classification: any token classifier of Transformers
"""
