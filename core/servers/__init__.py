"""Evaluators that run elsewhere: their addresses, and asking servers.

- address: how an evaluator behind a server is named
- server: requests to it: many at once but not too many, repeated where that helps, their answers in order
- pace: how many at once
- evaluator: a checkpoint's format with its network behind a vLLM server
- vllm: what vLLM's routes say of token ids
"""
