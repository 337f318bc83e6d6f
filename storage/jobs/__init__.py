"""Work that outlives a request and a server, and the files that browsers send for it.

Begin with `start_job` and `take_job`.
"""
