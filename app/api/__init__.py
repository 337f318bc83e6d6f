"""The HTTP API: scoring, and reading the store.

Begin with `build_api`; each module holds the routes of one noun, and `models` what they take and answer.
"""
