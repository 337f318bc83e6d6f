"""The pages, the HTTP server and the `stepsight` command.

Begin with `server`, which puts pages, routes and API together; each page is a folder.
"""
