"""The HTTP API for scoring and for reading the store.

Begin with `build_api`; each module has the routes of one noun, and `models` has their inputs and outputs.
"""
