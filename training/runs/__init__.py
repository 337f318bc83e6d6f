"""Long runs: their folders, checkpoints and progress, and how they resume. Start with `RunFolder` and
`Checkpoints`."""
