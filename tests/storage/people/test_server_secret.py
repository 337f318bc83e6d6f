"""The secret of the server."""

from concurrent.futures import ThreadPoolExecutor
from itertools import permutations

from sqlalchemy import select, update

from stepsight.storage.backup import make_backup, restore_backup
from stepsight.storage.database.schema import ServerSecretRow
from stepsight.storage.database.store import open_store
from stepsight.storage.people.blindness import keyed_digest, load_secret, read_secret, shuffle_people


def test_it_is_made_once_however_many_ask(store):
    with store.read() as session:
        assert session.scalars(select(ServerSecretRow)).all() == []
    with ThreadPoolExecutor(6) as pool:
        found = set(pool.map(lambda _: read_secret(store), range(12)))
    with store.write() as session:
        found.add(load_secret(session))
    (secret,) = found
    assert len(secret) == 32


def test_another_store_has_another(sqlite_store, tmp_path):
    with open_store(str(tmp_path / "other.db")) as other:
        assert read_secret(other) != read_secret(sqlite_store)


def test_a_backup_holds_it(store, tmp_path):
    secret = read_secret(store)
    make_backup(store, tmp_path / "one.backup")
    restore_backup(tmp_path / "one.backup", str(tmp_path / "new.db"))
    with open_store(str(tmp_path / "new.db")) as restored:
        assert read_secret(restored) == secret


def test_keyed_digests_differ_by_secret_and_subject():
    about = [(b"a", 1, 2), (b"b", 1, 2), (b"a", 2, 1), (b"a", 12), (b"a", "1 2 3")]
    assert len({keyed_digest(*one) for one in about}) == len(about)
    assert keyed_digest(b"a", 1, 2) == keyed_digest(b"a", 1, 2)


def test_people_stand_in_an_order_of_their_own_for_each_subject(store):
    orders = [tuple(shuffle_people(store, [3, 1, 2, 2], "item", number)) for number in range(100)]
    assert set(orders) == set(permutations((1, 2, 3)))
    assert orders == [tuple(shuffle_people(store, (1, 2, 3), "item", number)) for number in range(100)]
    with store.write() as session:
        session.execute(update(ServerSecretRow).values(secret=b"another"))
    assert orders != [tuple(shuffle_people(store, (1, 2, 3), "item", number)) for number in range(100)]
