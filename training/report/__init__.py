"""Measurements as tables, figures and pages.

Begin with `make_report`. A `Table` can be written as HTML, LaTeX, CSV or Markdown.
"""
