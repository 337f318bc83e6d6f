"""The application's fixtures, for requests; and every test of this folder is a search."""

from pathlib import Path

import pytest

from tests.app.conftest import command, evaluators, pages_are_only_mounted, tiny, tiny_causal  # noqa: F401

FOLDER = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(FOLDER):
            item.add_marker(pytest.mark.nightly)
