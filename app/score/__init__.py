"""Scoring what a person entered: its steps, the result, an earlier result beside it, files and links."""
