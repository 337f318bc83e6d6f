"""Work that outlives a request or a server, and the files that browsers upload for it.

Begin with `start_job` and `take_job`.
"""
