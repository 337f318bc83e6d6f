"""Texts as HTML.

- text, markdown: a text with its maths; Markdown
- marking: parts of a text that are marked
"""
