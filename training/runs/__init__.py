"""Long runs: folders, checkpoints, progress, and going on after an interruption.

Begin with `RunFolder` and `Checkpoints`.
"""
