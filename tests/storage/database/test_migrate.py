"""Migrations and models agree, and a store of another version is told apart."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alembic import command, op
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, MetaData, NullPool, create_engine, delete, insert, inspect, select, text

from stepsight.core.errors import UserError
from stepsight.core.hubs.remote import Remote, RemoteFile
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import Outputs, StepScores
from stepsight.core.trace import Trace
from stepsight.storage.browse.browse import browse
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.database import migrate as revisions
from stepsight.storage.database.labelling_schema import EventRow, ExposureRow, ItemRow, SlotRow
from stepsight.storage.database.location import locate
from stepsight.storage.database.schema import CalibrationRow, JudgmentRow, LeftOutRow, ProfileRow, TraceRow, now
from stepsight.storage.database.store import NEWEST_REVISION, Store, open_store
from stepsight.storage.jobs.fetches import start_fetch
from stepsight.storage.jobs.jobs import Task, list_jobs
from stepsight.storage.judgments.evaluators import register_evaluator
from stepsight.storage.judgments.judgments import missing_traces, read_judgments, save_judgments
from stepsight.storage.judgments.packed_judgments import HEAD
from stepsight.storage.judgments.verifications import Verification, list_verifications, save_verification
from stepsight.storage.labelling.campaigns import list_campaigns
from stepsight.storage.labelling.error_kinds import PRMBENCH_KINDS
from stepsight.storage.labelling.results.annotations import iterate_annotations
from stepsight.storage.labelling.review import read_review
from stepsight.storage.people.exposures import exposures_of, note_exposure
from stepsight.storage.people.invitations import accept, invite
from stepsight.storage.people.logins import open_login, user_of
from stepsight.storage.people.overview import list_people
from stepsight.storage.people.users import Role
from stepsight.storage.traces.queries import find_dataset, iterate_traces, list_datasets
from tests.storage.labelling.samples import campaign, do, expire, person, take
from tests.storage.people.samples import user
from tests.storage.samples import CLEAN, ERROR, SAMPLES, add, evaluator, judge, many, same

# Of every table, since the last ones refer to all the others.
METADATA = EventRow.metadata
# What the search rests on differs between the databases, and is in the migration alone.
SEARCH = ("trace_search", "ix_search")


def test_migrations_give_what_the_models_say(store: Store) -> None:
    def include(name: str | None, *about: object) -> bool:
        return not (name or "").startswith(SEARCH)

    with store.engine.connect() as connection:
        opts = {"compare_type": True, "include_name": include}
        context = MigrationContext.configure(connection, opts=opts)
        assert compare_metadata(context, METADATA) == []


def test_migrations_give_the_checks_and_rules_of_the_models(address: str) -> None:
    """What Alembic does not compare: checks, delete rules, index conditions."""
    open_store(address).close()
    engine = create_engine(locate(address), poolclass=NullPool)
    migrated = _describe(engine)
    METADATA.drop_all(engine)
    METADATA.create_all(engine)
    assert migrated == _describe(engine)
    assert "label IN" in str(migrated) or "label = ANY" in str(migrated)


def _describe(engine: Engine) -> dict[str, list[list[str]]]:
    inspector = inspect(engine)
    readers: list[Callable[[str], Any]] = [
        inspector.get_columns,
        inspector.get_check_constraints,
        inspector.get_foreign_keys,
        inspector.get_indexes,
        inspector.get_unique_constraints,
        lambda table: [inspector.get_pk_constraint(table)],
    ]
    tables = [table for table in sorted(inspector.get_table_names()) if not table.startswith(SEARCH)]
    return {table: [_comparable(read(table)) for read in readers] for table in tables}


def _comparable(found: list[Any]) -> list[str]:
    kept = [one for one in found if not (one.get("name") or "").startswith(SEARCH)]
    return sorted(json.dumps(one, default=str, sort_keys=True) for one in kept)


@contextmanager
def at_revision(address: str, revision: str) -> Iterator[Connection]:
    """A connection to a database as that revision left it."""
    with create_engine(locate(address), poolclass=NullPool).begin() as connection:
        config = revisions._config()
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        yield connection


def test_a_database_of_the_first_version_is_brought_up_to_date_with_its_data(address: str) -> None:
    with at_revision(address, "0001_traces_and_judgments") as connection:
        for statement in FIRST_VERSION:
            # 1.0, 0.0, 0.0 as little-endian float32.
            probabilities = {"probabilities": bytes.fromhex("0000803f 00000000 00000000")}
            connection.execute(text(statement), probabilities if ":probabilities" in statement else {})
    with open_store(address) as store:
        (dataset,) = list_datasets(store)
        assert (dataset.name, dataset.traces, dataset.left_out) == ("sums", 1, 0)
        (trace,) = iterate_traces(store, dataset.id)
        (found,) = read_judgments(store, trace)
        assert (found.evaluator.name, found.solution, found.stale) == ("mini", None, True)
        assert found.evaluator.outputs == Outputs.THREE_WAY
        assert isinstance(found.result, StepScores)
        assert found.result.probs.tolist() == [[1.0, 0.0, 0.0]]
        # The judgment is listed, its validity being 0, and the text is found.
        page = browse(store, dataset.id, TraceFilter(text="it is 2", evaluator=found.evaluator.id))
        assert (page.total, page.counts["verdict"]["invalid"]) == (1, 1)
        # What the version adds can be used: a score of the whole, thresholds, and rows left out.
        made = replace(judge(trace, "offline"), solution=0.5)
        save_judgments(store, found.evaluator.id, [made])
        assert read_judgments(store, trace)[0].solution == 0.5
        with store.write() as session:
            session.add(CalibrationRow(evaluator_id=found.evaluator.id, dataset_id=dataset.id, dataset="sums",
                                       validity=0.4, redundancy=0.2, info={}))  # fmt: skip
            session.add(LeftOutRow(dataset_id=dataset.id, digest="0" * 64, source="f", place="line 1", error="e"))
        assert find_dataset(store, "sums").size == "1 of 2"


FIRST_VERSION = (
    "INSERT INTO datasets (id, name, kind, source, sha256, created)"
    " VALUES (1, 'sums', 'plain', 'f', '', '2026-01-01 00:00:00+00:00')",
    "INSERT INTO traces (id, dataset_id, external_id, position, problem, digest, n_steps, n_substeps, has_gold,"
    " meta) VALUES (1, 1, 'a', 0, 'What is 1 + 1?', 'before', 1, 1, false, '{}')",
    "INSERT INTO steps (trace_id, position) VALUES (1, 0)",
    "INSERT INTO substeps (trace_id, step, position, text) VALUES (1, 0, 0, 'It is 2.')",
    "INSERT INTO evaluators (id, name, fingerprint, format, attention, info, created)"
    " VALUES (1, 'mini', 'f', 'stepsight', 'causal', '{}', '2026-01-01 00:00:00+00:00')",
    "INSERT INTO judgments (trace_id, dataset_id, evaluator_id, mode, trace_digest, probabilities, validity,"
    " redundancy, created)"
    " VALUES (1, 1, 1, 'offline', 'before', :probabilities, 0, 0, '2026-01-01 00:00:00+00:00')",
)


def test_a_database_of_the_second_version_gets_what_is_browsed_by(address: str, sqlite_store: Store) -> None:
    """The rows of a store of now, put into one of before, give the same profiles, lists and search again."""
    traces = add(sqlite_store, [*SAMPLES, *many(5)])
    mini, other = evaluator(sqlite_store), evaluator(sqlite_store, "other")
    for seed, trace in enumerate(traces):
        save_judgments(sqlite_store, mini.id, [judge(trace, "hindsight", seed)])
        both = [replace(judge(trace, mode), solution=0.5) for mode in ("online", "offline")]
        save_judgments(sqlite_store, other.id, both)
    with at_revision(address, "0002_evaluation") as connection:
        _copy(sqlite_store, connection)
    with open_store(address) as upgraded:
        before, after = [_profiles(one) for one in (sqlite_store, upgraded)]
        assert len(before) == 9 * 3
        assert before == after
        for where in (TraceFilter(evaluator=mini.id, against=other.id), TraceFilter(text="it is"), TraceFilter()):
            old, new = [browse(one, traces[0].dataset_id, where) for one in (sqlite_store, upgraded)]
            assert old == new
            assert old.total
        # What comes later is counted and found.
        new_id = add(upgraded, [Trace.of("Something new", ["It is."], id="new")], "new")[0].dataset_id
        assert browse(upgraded, new_id, TraceFilter(text="hing n")).total == 1
        assert browse(upgraded, traces[0].dataset_id, TraceFilter(text="hing n")).total == 0


def test_verdicts_in_words_are_compared_as_soon_as_they_blame(address: str, sqlite_store: Store) -> None:
    """Before 0006 the profile of a trace that is all valid did not tell so where the steps behind a blame had no
    score."""
    (trace,) = add(sqlite_store, [Trace.of("q", ["a", "b"], ["pos", "pos"], id="clean")])
    info = {"outputs": Outputs.VERDICT.value}
    speaking = register_evaluator(
        sqlite_store, name="it", fingerprint="it", format="imported", attention="unknown", info=info
    )
    silent_end = StepScores(np.array([[1, 0, 0], [0, 0, 0]], np.float32))
    save_judgments(sqlite_store, speaking.id, [Judgment(trace, Mode.OFFLINE, silent_end, 0.0)])
    (now,) = _profiles(sqlite_store)
    before = np.frombuffer(now.offline[: HEAD.itemsize], HEAD).copy()
    before["labelled"] = 0
    with at_revision(address, "0005_labelling") as connection:
        _copy(sqlite_store, connection)
        packed = before.tobytes() + now.offline[HEAD.itemsize :]
        connection.execute(text("UPDATE profiles SET offline = :packed"), {"packed": packed})
    with open_store(address) as upgraded:
        assert _profiles(upgraded) == [now]
        (row,) = browse(upgraded, trace.dataset_id, TraceFilter(evaluator=speaking.id)).rows
        assert (row.first_wrong, row.mistake) == (0, "false-alarm")


def test_redundant_gold_is_counted(address: str, sqlite_store: Store) -> None:
    """Before 0007 a trace did not tell whether the gold calls a step of it redundant."""
    labels = (["neu", "pos", "neu"], ["pos", "neg"], [None, "neu"], [None])
    traces = [Trace.of("q", [str(i) for i in range(len(one))], one, id=str(at)) for at, one in enumerate(labels)]
    dataset_id = add(sqlite_store, traces)[0].dataset_id
    with at_revision(address, "0006_rationales") as connection:
        _copy(sqlite_store, connection)
    with open_store(address) as upgraded:
        rows = browse(upgraded, dataset_id).rows
        assert [row.n_redundant for row in rows] == [2, 0, 1, 0]
        assert browse(upgraded, dataset_id, TraceFilter(gold="redundant")).total == 2
        assert find_dataset(upgraded, "sums").redundant == 2


def test_a_store_of_before_invitations_keeps_its_people_and_knows_their_last_logins(
    address: str, sqlite_store: Store
) -> None:
    ada, eve = user(sqlite_store, "ada", Role.ADMIN), user(sqlite_store, "eve")
    token = open_login(sqlite_store, ada)
    with at_revision(address, "0007_redundant_gold") as connection:
        _copy(sqlite_store, connection)
    with open_store(address) as upgraded:
        first, second = list_people(upgraded)
        assert (first.user, second.user) == (ada, eve)
        assert first.last_login is not None
        assert abs(first.last_login - now()) < timedelta(minutes=5)
        assert second.last_login is None
        assert user_of(upgraded, token) == ada
        assert accept(upgraded, invite(upgraded, Role.VIEWER, "new", ada), "", "a good sentence").name == "new"


def test_judgments_of_before_servers_wrote_any_took_nothing_of_one(address: str, sqlite_store: Store) -> None:
    (trace, *_) = add(sqlite_store)
    judged = judge(trace, Mode.HINDSIGHT)
    save_judgments(sqlite_store, evaluator(sqlite_store).id, [judged])
    with at_revision(address, "0017_homes") as connection:
        _copy(sqlite_store, connection)
    with open_store(address) as upgraded:
        (found,) = read_judgments(upgraded, trace)
        assert found.spent is None
        assert same(found.result, judged.result)


def test_campaigns_of_before_there_was_a_choice_keep_what_they_had(address: str, sqlite_store: Store) -> None:
    made = campaign(sqlite_store, overlap=2)
    ada, ben = (person(sqlite_store, name) for name in ("ada", "ben"))
    task = take(sqlite_store, made, ada)
    do(sqlite_store, task.slot_id, ada, "label", 0, "pos")
    do(sqlite_store, task.slot_id, ada, "label", 1, "neg")
    do(sqlite_store, task.slot_id, ada, "error", 1, "deception")
    with at_revision(address, "0008_invitations") as connection:
        _copy(sqlite_store, connection)
    with open_store(address) as upgraded:
        (kept,) = list_campaigns(upgraded)
        assert kept == replace(made, shows_answer=False, error_kinds=PRMBENCH_KINDS)
        assert (kept.after_submission, kept.restricted) == ("everything", False)
        assert (kept.sample, kept.population) == (None, None)
        do(upgraded, task.slot_id, ada, "submit")
        review = read_review(upgraded, task.slot_id, ada)
        assert review is not None
        assert (take(upgraded, kept, ben).answer, review.trace.has_gold) == (None, True)
        (annotation,) = iterate_annotations(upgraded, kept.id)
        assert annotation.errors == {1: "deception"}


def test_campaigns_of_before_marks_on_equations_have_none_and_exposures_stay(
    address: str, sqlite_store: Store
) -> None:
    made = campaign(sqlite_store)
    ada = person(sqlite_store, "ada")
    (seen, *_) = iterate_traces(sqlite_store, made.dataset_id)
    note_exposure(sqlite_store, ada, [seen.trace_id], "scores", "gold")
    with at_revision(address, "0012_evaluators") as connection:
        _copy(sqlite_store, connection)
    with open_store(address) as upgraded:
        assert list_campaigns(upgraded) == [made]
        assert not made.shows_equations
        note_exposure(upgraded, ada, [seen.trace_id], "equations")
        with upgraded.read() as session:
            assert exposures_of(session, ada.id, seen.trace_id) == {"scores", "gold", "equations"}
        marked = campaign(upgraded, None, name="marked", shows_equations=True)
        assert list_campaigns(upgraded)[0] == marked


def test_steps_of_several_sub_steps_are_judged_online_when_they_are_whole(
    address: str, sqlite_store: Store
) -> None:
    """Before 0015 each sub-step was judged online without the later ones of its own step."""
    parted, plain = add(sqlite_store, [ERROR, CLEAN])
    seeing = register_evaluator(
        sqlite_store, name="seeing", fingerprint="of seeing", format="stepsight", attention="bidirectional"
    )
    causal = evaluator(sqlite_store, "causal")
    for one in (seeing, causal):
        save_judgments(sqlite_store, one.id, [judge(trace, mode) for trace in (parted, plain) for mode in Mode])
    with at_revision(address, "0014_spread") as connection:
        _copy(sqlite_store, connection)
        numbers = "online_validity = 0, online_redundancy = 0, retroactive = 0"
        connection.execute(text(f"UPDATE judgments SET {numbers} WHERE mode = 'hindsight'"))
        profiles = text("UPDATE profiles SET online = :online WHERE mode = 'hindsight'")
        connection.execute(profiles, {"online": np.zeros((), HEAD).tobytes()})
    with open_store(address) as upgraded:
        for one in (seeing, causal):
            for trace in (parted, plain):
                found = {said.mode: said for said in read_judgments(upgraded, trace) if said.evaluator.id == one.id}
                stale = {mode for mode, said in found.items() if said.stale}
                assert stale == ({Mode.ONLINE} if one is seeing and trace is parted else set())
                missing = list(missing_traces(upgraded, parted.dataset_id, one.id, Mode.ONLINE))
                assert missing == []  # hindsight answers for it
            (row,) = (row for row in _rows_of(upgraded, one.id, parted.trace_id) if row.mode == Mode.HINDSIGHT)
            (kept,) = (row for row in _rows_of(sqlite_store, one.id, parted.trace_id) if row.mode == Mode.HINDSIGHT)
            names = ("online_validity", "online_redundancy", "retroactive")
            assert [getattr(row, name) for name in names] == [getattr(kept, name) for name in names]
            (row,) = (row for row in _rows_of(upgraded, one.id, plain.trace_id) if row.mode == Mode.HINDSIGHT)
            assert row.retroactive == 0
        key = (seeing.id, parted.trace_id)
        fresh, old = (
            {(row.evaluator_id, row.trace_id, row.mode): row.online for row in _profiles(store)}
            for store in (sqlite_store, upgraded)
        )
        assert fresh[*key, "hindsight"] == old[*key, "hindsight"]
        assert fresh[*key, "online"] != old[*key, "online"]


def test_exposures_of_before_belong_to_texts_and_what_campaigns_showed_is_one(
    address: str, sqlite_store: Store
) -> None:
    """Before 0016 they belonged to traces, and slots were known by their numbers."""
    (one, other) = add(sqlite_store, [ERROR, CLEAN])
    again = Trace.of(ERROR.problem, [" ".join(ERROR.substeps)], id="again")
    (copy,) = add(sqlite_store, [again], "copies")
    ada, ben, cleo = (person(sqlite_store, name) for name in ("ada", "ben", "cleo"))
    shown = {"shows": "scores", "evaluator": evaluator(sqlite_store).id, "shows_equations": True}
    made = campaign(sqlite_store, None, name="shows", **shown)
    blind = campaign(sqlite_store, None, name="blind", dataset="copies")
    task = take(sqlite_store, made, ada)
    do(sqlite_store, task.slot_id, ada, "label", 0, "pos")
    # Somebody else has the slot now: only the log tells that she had it.
    expire(sqlite_store, task.slot_id)
    take(sqlite_store, made, ben)
    held = take(sqlite_store, blind, cleo)
    with sqlite_store.write() as session:
        session.execute(delete(ExposureRow))
    note_exposure(sqlite_store, cleo, [other.trace_id], "gold")
    with at_revision(address, "0015_whole_steps") as connection:
        _copy(sqlite_store, connection)
        # Of both traces of the text, at two moments.
        connection.execute(
            text(
                "INSERT INTO exposures (user_id, trace_id, what, moment) VALUES (:user, :trace, 'labels', :moment)"
            ),
            [
                {"user": cleo.id, "trace": one.trace_id, "moment": "2026-02-01 00:00:00+00:00"},
                {"user": cleo.id, "trace": copy.trace_id, "moment": "2026-01-01 00:00:00+00:00"},
            ],
        )
    with open_store(address) as upgraded:
        with upgraded.read() as session:
            seen = {
                (user.name, trace.id): exposures_of(session, user.id, trace.trace_id)
                for user in (ada, ben, cleo)
                for trace in (one, copy, other)
            }
            moments = session.execute(select(ExposureRow.what, ExposureRow.moment).filter_by(user_id=cleo.id)).all()
            slots = session.execute(select(SlotRow.id, SlotRow.public_id)).all()
            texts = session.execute(select(TraceRow.id, TraceRow.text_digest)).all()
            items = session.execute(select(ItemRow.trace_id, ItemRow.text_digest)).all()
        both = {"scores", "equations"}
        assert {key: what for key, what in seen.items() if what} == {
            ("ada", "error"): both, ("ada", "again"): both,
            ("ben", "error"): both, ("ben", "again"): both,
            ("cleo", "error"): {"labels"}, ("cleo", "again"): {"labels"}, ("cleo", "clean"): {"gold"},
        }  # fmt: skip
        assert {row.moment for row in moments if row.what == "labels"} == {datetime(2026, 1, 1, tzinfo=UTC)}
        digests = {trace.trace_id: trace.text_digest for trace in (one, other, copy)}
        assert dict(texts) == dict(items) == digests
        assert len({row.public_id for row in slots}) == len(slots) == 3
        assert {len(row.public_id) for row in slots} == {16}
        # What goes on counts: the label in the blind campaign of the copies is not blind.
        do(upgraded, held.slot_id, cleo, "label", 0, "pos")
        do(upgraded, held.slot_id, cleo, "submit")
        (annotation,) = iterate_annotations(upgraded, blind.id)
        assert annotation.exposed == {"labels"}


def _rows_of(store: Store, evaluator_id: int, trace_id: int) -> list[JudgmentRow]:
    with store.read() as session:
        return list(session.scalars(select(JudgmentRow).filter_by(evaluator_id=evaluator_id, trace_id=trace_id)))


def _copy(store: Store, connection: Connection) -> None:
    """Put the rows of a store into the tables of an earlier version, as far as those have them."""
    earlier = MetaData()
    earlier.reflect(connection)
    with store.engine.connect() as now:
        for table in earlier.sorted_tables:
            if table.name not in METADATA.tables:
                continue
            model = METADATA.tables[table.name]
            wanted = select(model)
            if table.name == "exposures":
                # Before 0016 they were of traces.
                trace = METADATA.tables["traces"]
                same = trace.c.text_digest == model.c.text_digest
                wanted = select(model, trace.c.id.label("trace_id")).join_from(model, trace, same)
            found = now.execute(wanted).mappings()
            rows = [{column.name: row[column.name] for column in table.columns} for row in found]
            if rows:
                connection.execute(insert(table), rows)
            if rows and "id" in rows[0] and connection.dialect.name == "postgresql":
                sequence = f"pg_get_serial_sequence('{table.name}', 'id')"
                connection.execute(text(f"SELECT setval({sequence}, max(id)) FROM {table.name}"))


def _profiles(store: Store) -> list[Any]:
    key = (ProfileRow.evaluator_id, ProfileRow.trace_id, ProfileRow.mode)
    with store.read() as session:
        return list(session.execute(select(ProfileRow.__table__).order_by(*key)).all())


def test_jobs_of_the_version_before_stay_and_gigabytes_can_be_counted(address: str) -> None:
    with at_revision(address, "0011_campaign_choices") as connection:
        connection.execute(
            text(
                "INSERT INTO jobs (id, task, subject, request, state, total, began, done, left_out, attempts,"
                " reason, created) VALUES (1, 'import', 'a file', '{}', 'done', 5, 0, 5, 0, 0, '',"
                " '2026-01-01 00:00:00+00:00')"
            )
        )
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT setval(pg_get_serial_sequence('jobs', 'id'), 1)"))
    with open_store(address) as store:
        assert [(job.task, job.subject, job.done) for job in list_jobs(store)] == [(Task.IMPORT, "a file", 5)]
        remote = Remote(
            "lab/large",
            "c" * 40,
            (RemoteFile("lab/large", "c" * 40, "model.safetensors", 15_200_000_000, "d", True),),
        )
        job = start_fetch(store, remote)
        assert (job.task, job.total) == (Task.FETCH, 15_200_000_000)
        one = Verification("lab/large", "c" * 40, "f", "bfloat16", "gsm8k", 400, True, 0.4, 61.0, 58.0, 64.0, None)
        save_verification(store, one)
        assert list_verifications(store) == [one]


def test_revisions_are_one_line_with_names_that_postgresql_can_keep() -> None:
    scripts = ScriptDirectory.from_config(revisions._config())
    assert scripts.get_heads() == [NEWEST_REVISION]
    for script in scripts.walk_revisions():
        assert len(script.revision) <= 32
        assert Path(script.path).stem == script.revision


def test_a_newer_store_is_refused_and_left_alone(address: str) -> None:
    with open_store(address) as store, store.write() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999_later'"))
    with pytest.raises(UserError, match=r"schema is '9999_later', this version knows up to '0.*Update StepSight"):
        open_store(address)


def test_a_database_of_something_else_is_refused_and_left_alone(address: str) -> None:
    engine = create_engine(locate(address), poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE recipes (id INTEGER)"))
    with pytest.raises(UserError, match="a database of something else"):
        open_store(address)
    assert inspect(engine).get_table_names() == ["recipes"]


def test_a_migration_that_fails_leaves_nothing(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **options: object) -> None:
        raise RuntimeError("in the middle")

    with monkeypatch.context() as patched:
        patched.setattr(op, "create_index", fail)
        with pytest.raises(RuntimeError, match="in the middle"):
            open_store(address)
    engine = create_engine(locate(address), poolclass=NullPool)
    assert inspect(engine).get_table_names() == []
    open_store(address).close()


def test_a_sqlite_that_cannot_search_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlite3.sqlite_version_info", (3, 31, 1))
    with pytest.raises(UserError, match=r"This Python has SQLite .* Use one with SQLite 3\.34 or newer"):
        open_store(str(tmp_path / "store.db"))
