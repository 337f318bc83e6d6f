"""Long runs: folders, checkpoints, progress, and resuming after an interruption.

Begin with `RunFolder` and `Checkpoints`.
"""
