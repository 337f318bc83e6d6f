"""The Score page.

- page, entry, permalink: the page; the state it keeps; its address
- steps_view: how a text is split, and the tools to correct it
- scoring, comparison: scoring what was entered; an earlier result against it
- score_view, exports: the result; links, downloads, saving
- score_files, snippets: JSON and CSV; lines that reproduce it
"""
