"""Evaluators on a model hub, and those fetched from one. Needs no PyTorch.

- layout: names of files, ids of repositories
- remote, fetching, fetched: what a hub has; fetching it; what is here
- repositories: what public repositories do not say of themselves
- public: what authors say of public evaluators
"""
