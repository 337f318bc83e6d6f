"""Reports: measurements as tables, figures and pages. Start with `make_report`.

A `Table` can be written as HTML, LaTeX, CSV or Markdown.
"""
