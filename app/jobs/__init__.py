"""The Jobs page, and the process that works on queued jobs.

Begin with `jobs_html` for the page and `Worker` for the process.
"""
