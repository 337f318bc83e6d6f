"""A checkpoint in memory: backbone, head, tokenizer and placement.

Start with `ModelEvaluator`, or with `open_checkpoint` for its folder.
"""
