"""Text as safe HTML, with Markdown, mathematics and marked parts.

Begin with `text_html`.
"""
