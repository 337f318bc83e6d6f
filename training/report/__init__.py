"""Measurements as tables, figures and pages.

- report, chapters: a report of datasets; what there is to say of one
- tables, results: a table as LaTeX, CSV, Markdown and HTML; an evaluation as tables
- plots, figures: the figures; a Plotly figure as a page and a picture
- html: a page that needs no network
- patched: a dataset measured with and without a label patch
"""
