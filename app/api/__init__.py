"""The HTTP API for scoring traces and reading the store.

Start with `build_api`. Each module has the routes of one kind of resource, and `models` defines their inputs and
outputs.
"""
