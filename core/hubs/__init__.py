"""Evaluators on a model hub, and the local copies of fetched ones. Does not need PyTorch.

Start with `look_up`, which lists the files of a repository, and `fetch`, which downloads them.
"""
