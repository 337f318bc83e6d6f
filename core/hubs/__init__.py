"""Evaluators on a model hub, and the local copies of downloaded evaluators. Does not need PyTorch.

Start with `look_up`, which lists the files of a repository, and `fetch`, which downloads them.
"""
