"""Traces and judgments on their way out.

- table_files: rows as CSV, Parquet or JSON Lines, a few in memory at a time
- judgment_rows: judgments as a tidy table
- trace_lines: traces in the plain format
"""
