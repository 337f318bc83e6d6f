"""The Data page: the datasets in the store, benchmarks to fetch, and files to import.

Start with `state_html`, which renders the part of the page that changes during imports.
"""
