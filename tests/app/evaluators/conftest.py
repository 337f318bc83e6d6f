"""A model hub on this machine with two small evaluators, and a cache of one's own."""

import pytest

from tests.checkpoints import write_token_classifier
from tests.hub import Hub, point_to

SMALL = "trl-lib/Qwen2-0.5B-Reward-Math-Sheperd"
"""In the catalogue, so that the page offers it."""
OTHER = "lab/other-prm"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    one = Hub()
    for number, repo in enumerate((SMALL, OTHER)):
        folder = tmp_path / f"published-{number}"
        write_token_classifier(folder, "qwen2", max_position_embeddings=1024, intermediate_size=40 + 8 * number)
        one.folders[repo] = folder
    point_to(monkeypatch, one.url, tmp_path / "hub")
    monkeypatch.setenv("STEPSIGHT_CACHE", str(tmp_path / "cache"))
    with one.running():
        yield one
