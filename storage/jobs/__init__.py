"""Work that outlives a request or a server process, and the files that browsers upload for it.

Start with `start_job` and `take_job`.
"""
