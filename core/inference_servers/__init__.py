"""Evaluators behind inference servers: their addresses, and requests to them.

Begin with `Server`.
"""
