"""A checkpoint in memory: the backbone, the head on it, where they are placed."""
