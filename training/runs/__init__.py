"""Long runs: folders, checkpoints, progress and resuming. Start with `RunFolder` and `training`."""
