"""Evaluators on a model hub, and the local copies of those fetched from it. Needs no PyTorch.

Begin with `look_up`, which reads what a repository holds, and `fetch`, which brings it here.
"""
