"""Measurements as tables, figures and pages.

- report: a report of datasets, or of anything that is made of parts
- dataset: the part on one dataset; patched, patched_part: measured with and without a label patch, and its part
- results, tables: an evaluation as tables; a table as LaTeX, CSV and Markdown
- frames: labels, events and figures as pandas frames
- plots, figures: an evaluation as figures; figures as pictures for a paper
- html, templates: tables and figures as HTML, and pages that need no network
"""
