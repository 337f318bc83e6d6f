"""The default limits on computation for one request. This module does not import PyTorch."""

REQUEST_TOKENS = 2_100_000
"""The number of tokens computed: 1,000 steps of a full context of 4,096 in hindsight stay below."""

REQUEST_SECONDS = 120.0
"""The time for which a program's request is computed."""
