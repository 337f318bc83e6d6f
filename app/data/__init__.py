"""The Data page: the store's datasets, benchmarks to fetch, and files to add.

Begin with `state_html`, the part of the page that changes while files arrive.
"""
