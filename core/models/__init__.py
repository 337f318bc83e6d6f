"""A checkpoint in memory: backbone, head, tokenizer and placement.

Begin with `ModelEvaluator`. Use `open_checkpoint` to open its folder.
"""
