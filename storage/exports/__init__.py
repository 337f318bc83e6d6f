"""Exporting traces and judgments as frames and files.

Begin with `frame`, which returns a pandas frame, and `write_dataset`, which writes a folder.
"""
