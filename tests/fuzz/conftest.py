"""The application's fixtures, for requests."""

from tests.app.conftest import command, evaluators, pages_are_only_mounted, tiny, tiny_causal  # noqa: F401
