"""Text as safe HTML: Markdown, mathematics, and marked parts.

Begin with `text_html`; nothing outside this package builds HTML from a text.
"""
