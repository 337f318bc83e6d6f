"""The Data page: what the store holds, benchmarks to fetch, files to add.

- page: the page and what of it changes
- files: the routes by which a browser sends files and adds them
"""
