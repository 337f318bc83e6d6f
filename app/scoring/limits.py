"""The work that a server does for one request, where nobody set it otherwise. Needs no PyTorch."""

REQUEST_TOKENS = 500_000
"""Tokens that are computed: 200 steps of a full context of 4,096 in hindsight stay below."""

REQUEST_SECONDS = 120.0
"""For which a program's request is computed."""
