"""What everything that runs long shares: folder, lock, checkpoints, progress."""
