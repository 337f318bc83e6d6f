"""Evaluators, whatever they are: from a folder, a hub, a server, or equations alone.

- loading: an evaluator by its name, folder, id or address
- served: one whose network is behind a vLLM server
- describing: what a fetched evaluator is, by loading it once
- merging: an adapter and its base as one folder
"""
