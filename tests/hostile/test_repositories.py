"""Nothing that a hostile hub answers leaves the cache, fills the memory or takes the token, and it is refused."""

from pathlib import Path

import huggingface_hub
import pytest

from stepsight.core.errors import UserError
from stepsight.core.hubs.hub_download import fetch
from stepsight.core.hubs.hub_lookup import look_up
from stepsight.core.net import download
from tests.hostile.repositories import BEHAVIOURS, COMMIT, CONTENT, REPO, HostileHub, bomb
from tests.hostile.test_data_files import memory
from tests.hub import point_to

# What is harmless is fetched.
HONEST = ("an odd tag",)
QUICK = (
    "name '../evil'",
    "blob '../../../evil'",
    "list b'{'",
    "a packed list",
    "a list packed twice",
    "weights without end",
    "weights at file:///etc/passwd",
    *HONEST,
)
_MOST = 100_000
"""The kilobytes by which the memory of the process may rise."""


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in BEHAVIOURS]
)
def test_a_hostile_repository_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    hub, cache = HostileHub(BEHAVIOURS[name]), tmp_path / "cache"
    point_to(monkeypatch, hub.url, cache)
    monkeypatch.setenv("HF_TOKEN", "hf_ours")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_IMPLICIT_TOKEN", False)
    monkeypatch.setattr(download, "_FIRST_PAUSE", 0)
    for times in (1, 2):
        bomb(times)
    before = memory()
    with hub.running():
        try:
            fetched = fetch(look_up(REPO))
        except UserError:
            assert name not in HONEST
        else:
            assert name in HONEST or name.startswith("damaged list")
            assert name not in HONEST or fetched.revision == COMMIT
    assert memory(most=True) - before < _MOST
    assert hub.told == []
    assert [path for path in tmp_path.rglob("*") if not path.is_relative_to(cache)] == []
    assert all(path.resolve().is_relative_to(cache) for path in cache.rglob("*"))
    assert sum(path.stat().st_size for path in cache.rglob("blobs/*")) <= 2 * sum(map(len, CONTENT.values())) + (
        2 << 20
    )
