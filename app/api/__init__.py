"""The HTTP API: scoring, and reading the store; one module per noun."""
