"""What everything that runs long shares.

- folder: the folder of a run: a record of what its results depend on, and one process at a time
- row_file: JSON Lines that a run adds to, and goes on with
- checkpoints, resumable: whole checkpoints only; the trainer that goes on from the last
- optimisation, batches: the keys that say how a run learns; the batches of an epoch, on any number of devices
- processes: the runs of an experiment, several at once
- ray_engine, ray_scoring: parts of a work done by workers on Ray; an evaluator on each of them
- progress, curves, provenance: how far a run is; what it logged, drawn; where its result comes from
"""
