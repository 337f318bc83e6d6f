"""Files that browsers send."""

import gzip
import hashlib
import os
import shutil
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import update

from stepsight.core.errors import UserError
from stepsight.core.paths import CACHE_VARIABLE
from stepsight.storage.database.jobs_schema import UploadRow
from stepsight.storage.database.schema import now
from stepsight.storage.database.store import ConflictError, NotFoundError
from stepsight.storage.jobs import uploads
from stepsight.storage.jobs.uploads import (
    LARGEST,
    LASTS,
    Receiving,
    UploadSource,
    get_upload,
    keep_upload,
    list_uploads,
    remove_upload,
)
from stepsight.storage.people.users import Role, local_user
from tests.messages import refused
from tests.storage.jobs.samples import send
from tests.storage.people.samples import user

CONTENT = b'{"id": 1}\n' * 500 + b'{"id": 2}'


@pytest.fixture(autouse=True)
def folder(store, tmp_path, monkeypatch):
    """The folder of the files: beside a file, or in the cache."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    is_file = store.engine.dialect.name == "sqlite"
    return Path(f"{os.path.realpath(store.name)}.uploads") if is_file else tmp_path / "uploads"


def test_pieces_add_up_to_the_file(store, folder):
    me = local_user(store).id
    upload = send(store, me, CONTENT)
    assert upload.sha256 == hashlib.sha256(CONTENT).hexdigest()
    assert upload == get_upload(store, upload.id, me)
    source = UploadSource(upload)
    assert list(source) == CONTENT.splitlines(keepends=True)
    assert source.fraction == 1
    # A second look begins anew.
    assert next(iter(source)) == b'{"id": 1}\n'
    assert source.fraction == 10 / len(CONTENT)
    assert (upload.path.stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_compressed_file_is_unpacked_up_to_the_largest_size(store, monkeypatch):
    me = local_user(store).id
    upload = send(store, me, gzip.compress(CONTENT), "a.jsonl.gz", size=30)
    assert list(UploadSource(upload)) == CONTENT.splitlines(keepends=True)
    monkeypatch.setattr(uploads, "LARGEST", len(CONTENT) - 1)
    with refused():
        list(UploadSource(upload))


def test_a_file_is_its_senders_alone(store, folder):
    me, other = local_user(store).id, user(store, "other", Role.ADMIN).id
    upload = send(store, me, CONTENT)
    for upload_id, user_id in ((upload.id, other), (10**12, me)):
        with refused(NotFoundError):
            get_upload(store, upload_id, user_id)
    remove_upload(store, upload.id, other)
    assert list_uploads(store, me) == [upload]
    assert list_uploads(store, other) == []
    remove_upload(store, upload.id, me)
    assert list(folder.iterdir()) == []
    with refused(NotFoundError):
        list(UploadSource(upload))
    with refused(NotFoundError):
        keep_upload(store, upload)


def test_what_is_refused_or_breaks_off_leaves_nothing(store, folder, monkeypatch):
    me = local_user(store).id
    for name, size in (("big", 2_000_000_000), ("none", 0), ("a\nb", 5)):
        with refused():
            Receiving(store, me, name, size)
    for content in (b"PK\x03\x04" + b"0" * 100, b"0" * 5001, b"a"):
        with refused(), Receiving(store, me, "a.zip", 5000) as receiving:
            receiving.add(content)
            receiving.finish()
    with suppress(ConnectionError), Receiving(store, me, "broken", 10) as receiving:
        receiving.add(b"12345")
        raise ConnectionError
    assert (list_uploads(store, me), list(folder.iterdir())) == ([], [])
    monkeypatch.setattr(uploads, "_ROOM", LARGEST)
    with refused(ConflictError):
        send(store, me, CONTENT)
        Receiving(store, me, "more", LARGEST)


def test_what_nobody_adds_is_gone_after_a_day_and_what_a_killed_server_left_after_an_hour(store, folder):
    me = local_user(store).id
    old, newer = send(store, me, CONTENT, "old"), send(store, me, CONTENT, "newer")
    with store.write() as session:
        touched = update(UploadRow).where(UploadRow.id == old.id)
        session.execute(touched.values(touched=now() - LASTS - timedelta(seconds=1)))
    partials = [folder / "1.partial", folder / "2.partial"]
    for path in partials:
        path.write_bytes(b"half")
    for path, hours in ((old.path, 24), (newer.path, 2), (partials[0], 1)):
        os.utime(path, (time.time() - 3600 * hours - 1,) * 2)
    following = send(store, me, b"[]", "next")
    assert list_uploads(store, me) == [newer, following]
    assert set(folder.iterdir()) == {newer.path, following.path, partials[1]}


def test_a_disk_without_room_is_named_before_anything_is_sent(store, monkeypatch):
    me = local_user(store).id
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(uploads.shutil, "disk_usage", lambda _: usage._replace(free=49_000_000))
    with pytest.raises(UserError, match=r"adding it takes 50\.0 MB"):
        Receiving(store, me, "big.jsonl", 10_000_000)
    with Receiving(store, me, "small.jsonl", 9_000_000):
        pass
