"""What everything that runs long shares.

- folder: whose a folder is, and its lock
- checkpoints, resumable: whole checkpoints only; going on from the last
- batches: the batches of an epoch, on any number of devices
- progress, provenance: how far a run is; where an evaluator comes from
"""
