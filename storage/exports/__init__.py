"""Traces and judgments on their way out.

- table_files: rows and frames as CSV, Parquet or JSON Lines, a few in memory at a time
- frames: judgments as pandas frames
- judgment_columns: judgments as columns of numbers, from which these are made
- dataset_folders: folders with a card that `datasets` loads
- trace_lines: traces in the plain format
"""
