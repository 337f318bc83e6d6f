"""Evaluators behind inference servers: their addresses, and the requests sent to them.

Start with `Server`.
"""
