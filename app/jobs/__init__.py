"""The Jobs page, and the worker process that carries out queued jobs.

Start with `jobs_html` for the page and `Worker` for the process.
"""
