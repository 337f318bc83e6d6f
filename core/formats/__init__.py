"""The layouts of checkpoints, one module each; a new one is a module and a line in `loading`.

- loading, hub: finding a checkpoint, recognising its layout, loading it; one of a model hub
- layout: what the module of a layout has to offer
- stepsight: our own layout, and any backbone with a score head
- reasoneval, math_shepherd, qwen_prm: three public families
- token_classification, classes: any token classifier of Transformers, and what its classes mean
"""
