"""The web pages, the HTTP server and the `stepsight` command.

Start with `server`, which assembles the pages, the routes and the API. Each page has its own folder.
"""
