"""Evaluators behind inference servers: their addresses, and requests to them.

Start with `Server`.
"""
