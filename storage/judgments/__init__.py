"""Judgments in the store, and who made them.

- judgments, packed_judgments: storing and reading judgments; those of a dataset, packed
- metric_columns: gold and judgments as columns, for metrics
- evaluators, calibrations: the evaluators that judged, and their thresholds
- verifications: published figures that were measured again
- score_files: published score files
"""
