"""Rendering text as safe HTML, with Markdown, formulas and marked parts.

Start with `text_html`.
"""
