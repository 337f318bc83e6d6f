"""Published files, fetched from a real server on this machine."""

import hashlib
import re
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from stepsight.core.paths import cache_folder
from stepsight.storage.importers import KINDS, catalogue
from stepsight.storage.importers.catalogue import PublicFile, fetch, public_file, published_files
from tests.messages import refused
from tests.storage.public_server import PublicServer

CONTENT = b"".join(b'{"id": %d}\n' % i for i in range(30_000))
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def server():
    with PublicServer().running() as running:
        running.files["/rows.json"] = CONTENT
        yield running


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("STEPSIGHT_CACHE", str(folder))
    # Not asked for this machine's own addresses.
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setattr(catalogue, "_FIRST_PAUSE", 0.01)
    return folder


def published(server, sha256=SHA256, path="/rows.json"):
    return PublicFile("rows.json", f"{server.url}{path}", sha256)


def kept(cache):
    return [path.name for path in cache.rglob("*") if path.is_file() and path.name != ".lock"]


def test_a_file_is_fetched_checked_and_kept(server, cache):
    calls: list[tuple[int, int | None]] = []
    path = fetch(published(server), lambda there, size: calls.append((there, size)))
    assert path == cache / "downloads" / SHA256 / "rows.json"
    assert path.read_bytes() == CONTENT
    assert kept(cache) == ["rows.json"]
    assert calls == sorted(calls)
    assert calls[-1] == (len(CONTENT), len(CONTENT))
    assert len(calls) > 1


def test_a_cached_file_is_not_requested_again(server):
    first = fetch(published(server))
    assert fetch(published(server)) == first
    assert server.requests == ["/rows.json"]


def test_a_file_that_two_want_at_once_is_fetched_once(server):
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(fetch, [published(server)] * 2)
    assert first == second
    assert server.requests == ["/rows.json"]


def test_a_damaged_copy_in_the_cache_is_fetched_again(server):
    path = fetch(published(server))
    path.write_bytes(b"damaged")
    assert fetch(published(server)).read_bytes() == CONTENT
    assert len(server.requests) == 2


def test_another_content_is_refused_and_nothing_kept(server, cache):
    with refused():
        fetch(published(server, "0" * 64))
    assert kept(cache) == []


def test_without_a_known_hash_nothing_is_asked_for(server):
    with refused():
        fetch(published(server, None))
    assert server.requests == []


def test_a_refusal_of_the_server_is_passed_on(server, cache):
    with refused():
        fetch(published(server, path="/none.json"))
    assert kept(cache) == []


def test_a_server_that_is_not_there(cache):
    with PublicServer().running() as gone:
        file = published(gone)
    with refused():
        fetch(file)
    assert kept(cache) == []


@pytest.mark.parametrize("chunked", [True, False])
def test_a_transfer_that_is_cut_off_begins_again_by_itself(server, cache, chunked):
    """Also where the server does not tell the size."""
    server.chunked = {"/rows.json"} if chunked else set()
    server.cut["/rows.json"] = [100_000]
    sizes: list[int | None] = []
    assert fetch(published(server), lambda _, size: sizes.append(size)).read_bytes() == CONTENT
    assert set(sizes) == {None, len(CONTENT)}
    assert len(server.requests) == 2
    assert kept(cache) == ["rows.json"]


def test_a_transfer_that_is_cut_off_again_and_again_is_given_up(server, cache):
    server.cut["/rows.json"] = [100_000, 50_000] * 20
    with refused():
        fetch(published(server))
    assert len(server.requests) == 5
    assert kept(cache) == []


def test_a_server_that_is_busy_is_asked_again(server):
    server.busy = 2
    assert fetch(published(server)).read_bytes() == CONTENT
    assert len(server.requests) == 3


def test_a_cache_that_cannot_be_written(server, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("STEPSIGHT_CACHE", str(tmp_path / "file"))
    with refused():
        fetch(published(server))


def test_the_place_of_the_cache(tmp_path, monkeypatch):
    monkeypatch.delenv("STEPSIGHT_CACHE")
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache_folder() == tmp_path / ".cache" / "stepsight"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "stepsight"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder() == tmp_path / "Library" / "Caches" / "stepsight"


def test_public_files_are_pinned_or_lack_a_hash():
    files = [file for kind in KINDS for file in published_files(kind)]
    assert len(files) == 15
    assert len({file.url for file in files}) == 15
    for file in files:
        assert file.url.startswith("https://")
        assert file.url.lower().endswith(f"/{file.name}".lower())
        if file.sha256 is not None:
            assert re.fullmatch("[0-9a-f]{64}", file.sha256)
            assert re.search("/[0-9a-f]{40}/", file.url), "a hash goes with a commit"


def test_one_of_several_files_is_named():
    assert public_file("prm800k", "phase2_test.jsonl").name == "phase2_test.jsonl"
    with refused():
        public_file("prm800k")
    with refused():
        public_file("perturbation", "other.json")
    with refused():
        public_file("stepwise")


def test_a_hash_of_the_users_takes_the_place_of_the_known_one():
    assert public_file("processbench", "math.json").sha256 is None
    assert public_file("processbench", "math.json", "1" * 64).sha256 == "1" * 64
    assert public_file("perturbation", sha256="1" * 64).sha256 == "1" * 64
