"""What everything that runs long shares.

- folder: the folder of a run: a record of what its results depend on, and one process at a time
- rows: JSON Lines that a run adds to, and goes on with
- optimisation: how a run learns
- checkpoints, resumable: whole checkpoints only; the trainer that goes on from the last
- batches: the batches of an epoch, on any number of devices
- processes: the runs of an experiment, several at once
- progress, provenance: how far a run is; where its result comes from
"""
