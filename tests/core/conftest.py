import pytest

from stepsight.core.paths import CACHE_VARIABLE


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path_factory):
    """A cache folder for the test alone, so that assembled folders are not left in the user's."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv(CACHE_VARIABLE, str(folder))
    return folder
