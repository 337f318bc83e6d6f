"""Evaluators on a model hub, and local copies of the ones that were fetched. Does not need PyTorch.

Start with `look_up`, which lists the files of a repository, and `fetch`, which downloads them.
"""
