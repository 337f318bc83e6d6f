"""A checkpoint in memory: backbone, head, tokenizer and placement.

Begin with `ModelEvaluator`. `open_checkpoint` opens the folder that it is read from.
"""
