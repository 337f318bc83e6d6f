"""Asking servers, which have evaluators: their addresses, and requests to them.

- address: how an evaluator behind a server is named
- server: requests to it: many at once but not too many, repeated where that helps, their answers in order
- pace: how many at once
- vllm: what vLLM's routes say of token ids
"""
