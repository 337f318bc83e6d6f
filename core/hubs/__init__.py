"""Evaluators on a model hub, and the local copies of those fetched from it. Needs no PyTorch.

Begin with `look_up`, which lists the files of a repository, and `fetch`, which brings them here.
"""
