"""Traces and judgments as frames and files.

Begin with `frame`, which makes a pandas frame, and `write_dataset`, which makes a folder.
"""
