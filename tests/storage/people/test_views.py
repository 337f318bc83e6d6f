"""Views that people keep."""

import pytest
from sqlalchemy import delete

from stepsight.storage.database.schema import DatasetRow
from stepsight.storage.database.store import ConflictError, NotFoundError, Store
from stepsight.storage.people import views
from stepsight.storage.people.users import Role, local_user
from stepsight.storage.people.views import ChangeableView, list_views, save_view
from tests.messages import refused
from tests.storage.people.samples import user
from tests.storage.samples import add


def names(store: Store, who: object) -> list[str]:
    return [view.name for view in list_views(store, who)]  # type: ignore[arg-type]


def test_a_view_is_kept_renamed_and_deleted(store: Store) -> None:
    add(store)
    ada = user(store, "ada")
    save_view(store, ada, "späte Fehler", "sums", "dataset=sums&error_at=late")
    save_view(store, ada, "All", "sums", "dataset=sums")
    first, second = list_views(store, ada)
    # By name, whatever the case.
    assert [first.name, second.name] == ["All", "späte Fehler"]
    assert (second.dataset, second.query, second.is_gone, second.may_change) == (
        "sums", "dataset=sums&error_at=late", False, True,
    )  # fmt: skip
    for _ in range(2):
        ChangeableView(ada, second.id).rename(store, "late")
    assert names(store, ada) == ["All", "late"]
    with refused(ConflictError):
        ChangeableView(ada, second.id).rename(store, "All")
    with refused(ConflictError):
        save_view(store, ada, "late", "sums", "")
    ChangeableView(ada, first.id).delete(store, ada)
    assert names(store, ada) == ["late"]
    with refused(NotFoundError):
        ChangeableView(ada, first.id).delete(store, ada)


def test_people_see_their_own_and_those_of_before_there_were_people(store: Store) -> None:
    add(store)
    local = local_user(store)
    save_view(store, local, "of all", "sums", "dataset=sums")
    ada, eve, boss = user(store, "ada"), user(store, "eve"), user(store, "boss", Role.ADMIN)
    save_view(store, ada, "hers", "sums", "dataset=sums")
    # The same name is free for everybody.
    save_view(store, eve, "hers", "sums", "dataset=sums")
    assert names(store, ada) == ["hers", "of all"]
    assert names(store, boss) == names(store, None) == ["of all"]
    assert not list_views(store, None)[0].may_change
    (hers, of_all) = list_views(store, ada)
    assert (hers.may_change, of_all.may_change) == (True, False)
    for who, view in ((eve, hers), (boss, hers), (ada, of_all)):
        with pytest.raises(NotFoundError):
            ChangeableView(who, view.id).rename(store, "taken")
        with pytest.raises(NotFoundError):
            ChangeableView(who, view.id).delete(store, who)
    assert list_views(store, boss)[0].may_change
    ChangeableView(boss, of_all.id).delete(store, boss)
    assert names(store, ada) == ["hers"]


def test_a_view_says_that_its_dataset_is_gone(store: Store) -> None:
    add(store)
    ada = user(store, "ada")
    save_view(store, ada, "mine", "sums", "dataset=sums")
    with store.write() as session:
        session.execute(delete(DatasetRow))
    (view,) = list_views(store, ada)
    assert (view.is_gone, view.dataset) == (True, "sums")
    # It is there again where one of that name is.
    add(store)
    assert not list_views(store, ada)[0].is_gone


@pytest.mark.parametrize("name", ["", "x" * 201, " x", "a\nb", "a\x00b", "a\u202eb"])
def test_an_invalid_name_is_refused(sqlite_store: Store, name: str) -> None:
    ada = user(sqlite_store, "ada")
    with refused():
        save_view(sqlite_store, ada, name, "sums", "")
    save_view(sqlite_store, ada, "x", "sums", "")
    with refused():
        ChangeableView(ada, list_views(sqlite_store, ada)[0].id).rename(sqlite_store, name)
    assert names(sqlite_store, ada) == ["x"]


def test_views_are_limited_in_number_and_length(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "MOST_VIEWS", 2)
    ada, eve = user(sqlite_store, "ada"), user(sqlite_store, "eve")
    for name in "ab":
        save_view(sqlite_store, ada, name, "sums", "")
    with refused(ConflictError):
        save_view(sqlite_store, ada, "c", "sums", "")
    save_view(sqlite_store, eve, "c", "sums", "")
    with refused():
        save_view(sqlite_store, eve, "d", "sums", "x" * 10_001)
