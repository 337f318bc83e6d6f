"""A checkpoint in memory: backbone, head, tokenizer and placement.

Start with `ModelEvaluator`, or with `open_checkpoint` to open a checkpoint's folder.
"""
