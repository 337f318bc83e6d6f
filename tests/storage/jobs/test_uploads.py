"""Files that browsers send in parts."""

import gzip
import hashlib
import shutil
from datetime import timedelta

import pytest
from sqlalchemy import func, select, update

from stepsight.storage.database.jobs_schema import UploadPartRow, UploadRow
from stepsight.storage.database.schema import now
from stepsight.storage.database.store import ConflictError, NotFoundError, Store
from stepsight.storage.jobs import uploads
from stepsight.storage.jobs.uploads import (
    LARGEST,
    LASTS,
    UploadSource,
    add_part,
    begin_upload,
    get_upload,
    list_uploads,
    remove_upload,
)
from stepsight.storage.people.users import Role, local_user
from tests.messages import refused
from tests.storage.jobs.samples import send
from tests.storage.people.samples import user

CONTENT = b'{"id": 1}\n' * 500 + b'{"id": 2}'


def test_parts_add_up_to_the_file(store: Store) -> None:
    me = local_user(store).id
    upload = send(store, me, CONTENT)
    assert (upload.size, upload.received) == (len(CONTENT), len(CONTENT))
    assert upload.sha256 == hashlib.sha256(CONTENT).hexdigest()
    source = UploadSource(store, upload)
    assert list(source) == CONTENT.splitlines(keepends=True)
    assert source.fraction == 1
    # A second look begins anew.
    assert next(iter(source)) == b'{"id": 1}\n'
    assert source.fraction == 10 / len(CONTENT)


def test_a_compressed_file_is_unpacked_up_to_the_largest_size(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = local_user(store).id
    upload = send(store, me, gzip.compress(CONTENT), "a.jsonl.gz", size=30)
    assert list(UploadSource(store, upload)) == CONTENT.splitlines(keepends=True)
    monkeypatch.setattr(uploads, "LARGEST", len(CONTENT) - 1)
    with refused():
        list(UploadSource(store, upload))


def test_a_file_is_gone_on_with_where_it_stopped(store: Store) -> None:
    me = local_user(store).id
    first = begin_upload(store, me, "a.jsonl", len(CONTENT), "7")
    add_part(store, first.id, me, 0, CONTENT[:100])
    again = begin_upload(store, me, "a.jsonl", len(CONTENT), "7")
    assert (again.id, again.received) == (first.id, 100)
    # An answer that was lost: the part comes again, and is not added twice; one too far ahead waits.
    assert add_part(store, first.id, me, 0, CONTENT[:100]).received == 100
    assert add_part(store, first.id, me, 200, CONTENT[200:300]).received == 100
    assert add_part(store, first.id, me, 100, b"").received == 100
    with refused():
        UploadSource(store, again)
    assert begin_upload(store, me, "a.jsonl", len(CONTENT), "8").id != first.id


def test_a_file_is_its_senders_alone(store: Store) -> None:
    me, other = local_user(store).id, user(store, "other", Role.ADMIN).id
    upload = send(store, me, CONTENT)
    for reach in (
        lambda: get_upload(store, upload.id, other),
        lambda: add_part(store, upload.id, other, 0, b"x"),
        lambda: get_upload(store, 10**12, me),
    ):
        with refused(NotFoundError):
            reach()
    remove_upload(store, upload.id, other)
    assert list_uploads(store, me) == [upload]
    assert list_uploads(store, other) == []
    remove_upload(store, upload.id, me)
    with store.read() as session:
        assert session.scalar(select(func.count()).select_from(UploadPartRow)) == 0


def test_a_file_too_large_or_without_data_is_refused_and_leaves_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = local_user(store).id
    with refused():
        begin_upload(store, me, "big", 2_000_000_000)
    with refused():
        begin_upload(store, me, "none", 0)
    with refused():
        begin_upload(store, me, "a\nb", 5)
    archive = begin_upload(store, me, "a.zip", 5000)
    with refused():
        add_part(store, archive.id, me, 0, b"PK\x03\x04" + b"0" * 100)
    assert list_uploads(store, me) == []
    short = begin_upload(store, me, "short", 10)
    with refused():
        add_part(store, short.id, me, 0, b"0" * 11)
    with refused():
        add_part(store, short.id, me, 0, b"0" * 2_000_000)
    assert get_upload(store, short.id).received == 0
    monkeypatch.setattr(uploads, "_ROOM", LARGEST)
    with refused(ConflictError):
        begin_upload(store, me, "more", LARGEST)


def test_an_abandoned_upload_is_gone_after_a_day(store: Store) -> None:
    me = local_user(store).id
    old, newer = send(store, me, CONTENT, "old"), send(store, me, CONTENT, "newer")
    with store.write() as session:
        touched = update(UploadRow).where(UploadRow.id == old.id)
        session.execute(touched.values(touched=now() - LASTS - timedelta(seconds=1)))
    begin_upload(store, me, "next", 10)
    assert [one.name for one in list_uploads(store, me)] == ["newer", "next"]
    assert newer.is_whole


def test_a_disk_without_room_is_named_before_anything_is_sent(sqlite_store: Store, monkeypatch) -> None:
    me = local_user(sqlite_store).id
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(uploads.shutil, "disk_usage", lambda _: usage._replace(free=49_000_000))
    with refused():
        begin_upload(sqlite_store, me, "big.jsonl", 10_000_000)
    assert list_uploads(sqlite_store, me) == []
    assert begin_upload(sqlite_store, me, "small.jsonl", 9_000_000).size == 9_000_000
