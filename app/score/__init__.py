"""The Score page.

- page, form: the page; what was entered, as a trace and as an address
- steps: how a text is split, and the steps to be corrected
- result, comparison: scoring what was entered; an earlier result against it
- exports, files: links, lines that reproduce a result, saving; JSON and CSV
"""
