"""Measurements as tables, figures and pages.

Begin with `make_report`; a `Table` is written as HTML, LaTeX, CSV or Markdown.
"""
