"""A checkpoint in memory: backbone, head, tokenizer and placement.

Begin with `ModelEvaluator`; `open_checkpoint` reads its folder.
"""
