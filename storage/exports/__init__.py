"""Exporting traces and judgments as pandas frames and as files.

Start with `frame`, which returns a pandas frame, and `write_judgments`, which writes a folder.
"""
