from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy import select, text

from stepsight.core.errors import UserError
from stepsight.core.judgment import Judgment, Mode, Usage
from stepsight.core.scores import StepScores
from stepsight.core.trace import Trace
from stepsight.storage.database.schema import JudgmentRow
from stepsight.storage.database.store import insert_or_update
from stepsight.storage.database.stored_json import DamagedError
from stepsight.storage.judgments import judgments
from stepsight.storage.judgments.judgments import (
    count_missing,
    missing_traces,
    read_judgments,
    read_many,
    save_judgments,
    save_together,
    unpack,
)
from stepsight.storage.traces import queries
from tests.messages import refused
from tests.storage.samples import ERROR, add, evaluator, find_judgment, judge, many, same, scores, triangle


@pytest.fixture
def traces(store):
    return add(store)


def rows(store):
    with store.read() as session:
        return list(session.scalars(select(JudgmentRow).order_by(JudgmentRow.trace_id)))


@pytest.mark.parametrize("mode", list(Mode))
def test_a_judgment_comes_back_to_the_bit(store, traces, mode):
    mini = evaluator(store)
    made = [judge(trace, mode, seed) for seed, trace in enumerate(traces)]
    assert save_judgments(store, mini.id, made) == 4
    for trace, before in zip(traces, made, strict=True):
        (read,) = read_judgments(store, trace)
        assert (read.mode, read.evaluator, read.stale, read.trace) == (mode, mini, False, trace)
        assert same(read.result, before.result)


def test_the_cost_of_a_server_comes_back(store, traces):
    spent = [Usage(5, 1, 1500, 260), Usage(1, 0, None, None), None]
    made = [replace(judge(trace, "online"), spent=one) for trace, one in zip(traces, spent, strict=False)]
    save_judgments(store, evaluator(store).id, made)
    assert [read_judgments(store, trace)[0].spent for trace in traces[:3]] == spent
    with store.write() as session:
        session.execute(text("""UPDATE judgments SET spent = '{"calls": -1}' WHERE spent IS NOT NULL"""))
    with refused(DamagedError):
        read_judgments(store, traces[0])


def test_probabilities_are_little_endian_float32_row_by_row(store):
    made = StepScores(np.array([[1, 0, 0], [0.25, 0.25, 0.5]], np.float32))
    # 1.0 is 0x3f800000, 0.25 is 0x3e800000, 0.5 is 0x3f000000.
    packed = bytes.fromhex("0000803f 00000000 00000000 0000803e 0000803e 0000003f")
    assert same(unpack(packed, Mode.OFFLINE), made)
    (trace,) = add(store, [Trace.of("q", ["a", "b"], id="two")], "two")
    save_judgments(store, evaluator(store).id, [Judgment(trace, Mode.OFFLINE, made)])
    assert [row.scores for row in rows(store)] == [packed]


def test_hindsight_answers_for_online_and_offline(store, traces):
    mini, trace = evaluator(store), traces[0]
    judged = judge(trace, "hindsight")
    save_judgments(store, mini.id, [judged])
    # The second step is judged online when its second sub-step is there.
    assert judged.online is not None
    rows = triangle(3).rows
    np.testing.assert_array_equal(judged.online.probs, [rows[0][0], rows[2][1], rows[2][2]])
    for mode, expected in (("online", judged.online), ("offline", judged.offline)):
        found = find_judgment(store, trace, mini.id, mode)
        assert found is not None
        answer = getattr(found, mode)
        assert same(answer, expected)


def test_the_mode_itself_comes_before_hindsight(store, traces):
    mini, trace = evaluator(store), traces[0]
    save_judgments(store, mini.id, [judge(trace, "hindsight"), judge(trace, "online")])
    found = [find_judgment(store, trace, mini.id, mode) for mode in Mode]
    assert [one.mode for one in found if one] == ["hindsight", "online", "hindsight"]
    assert find_judgment(store, traces[1], mini.id, "online") is None


def test_online_does_not_answer_for_offline(store, traces):
    mini = evaluator(store)
    save_judgments(store, mini.id, [judge(traces[0], "online")])
    assert find_judgment(store, traces[0], mini.id, "offline") is None
    assert find_judgment(store, traces[0], mini.id, "hindsight") is None


def test_a_hindsight_judgment_replaces_all_and_another_what_it_gives(store, traces):
    mini, trace = evaluator(store), traces[0]
    save_judgments(store, mini.id, [judge(trace, "offline", 1), judge(trace, "online", 2)])
    save_judgments(store, mini.id, [judge(trace, "hindsight", 3)])
    assert [judgment.mode for judgment in read_judgments(store, trace)] == ["hindsight"]
    save_judgments(store, mini.id, [judge(trace, "offline", 4)])
    hindsight, offline = read_judgments(store, trace)
    assert (hindsight.mode, offline.mode) == ("hindsight", "offline")
    assert same(hindsight.result, triangle(3, 3))
    assert same(offline.result, scores(3, 4))
    standing = [find_judgment(store, trace, mini.id, mode) for mode in (Mode.ONLINE, Mode.OFFLINE)]
    assert [judgment and judgment.mode for judgment in standing] == ["hindsight", "offline"]


def test_the_last_of_two_in_one_batch_stays(store, traces):
    mini = evaluator(store)
    save_judgments(store, mini.id, [judge(traces[0], "offline", seed) for seed in (1, 2, 3)])
    (read,) = read_judgments(store, traces[0])
    assert same(read.result, scores(3, 3))


def test_judgments_are_read_by_evaluator_name_and_mode(store, traces):
    b, a = evaluator(store, "b"), evaluator(store, "a")
    for one in (b, a):
        save_judgments(store, one.id, [judge(trace, mode) for trace in traces for mode in ("online", "offline")])
    for trace, found in zip(traces, read_many(store, traces), strict=True):
        assert [(one.evaluator.name, one.mode) for one in found] == [
            ("a", "offline"), ("a", "online"), ("b", "offline"), ("b", "online"),
        ]  # fmt: skip
        assert all(one.trace is trace for one in found)
    assert [len(found) for found in read_many(store, traces, a.id)] == [2, 2, 2, 2]
    assert read_many(store, []) == []


def test_traces_without_a_judgment_are_found(store, traces):
    mini, other = evaluator(store), evaluator(store, "other")
    add(store, many(3), "elsewhere")
    dataset_id = traces[0].dataset_id
    save_judgments(store, other.id, [judge(trace, "hindsight") for trace in traces])
    save_judgments(store, mini.id, [judge(traces[0], "offline"), judge(traces[1], "hindsight")])

    def missing(mode: str) -> list[str]:
        found = [trace.id for trace in missing_traces(store, dataset_id, mini.id, mode)]
        assert count_missing(store, dataset_id, mini.id, mode) == len(found)
        return found

    assert missing("offline") == ["missing", "first"]
    assert missing("online") == ["error", "missing", "first"]
    assert missing("hindsight") == ["error", "missing", "first"]


def test_a_judgment_of_a_changed_trace_is_stale_and_missing(store, traces):
    mini, trace = evaluator(store), traces[0]
    save_judgments(store, mini.id, [judge(trace, "offline")])
    with store.write() as session:
        session.execute(text("UPDATE judgments SET digest = 'before'"))
    assert read_judgments(store, trace)[0].stale
    assert find_judgment(store, trace, mini.id, "offline") is None
    assert count_missing(store, trace.dataset_id, mini.id, "offline") == 4
    save_judgments(store, mini.id, [judge(trace, "offline")])
    assert not read_judgments(store, trace)[0].stale


@pytest.mark.parametrize("batch", [1, 3, 100])
def test_scoring_what_is_missing_can_stop_and_go_on(store, monkeypatch, batch):
    monkeypatch.setattr(queries, "BATCH", 4)
    monkeypatch.setattr(judgments, "_BATCH", batch)
    dataset_id, mini = add(store, many(11))[0].dataset_id, evaluator(store)
    done: list[str] = []

    def score(stop: int) -> Iterator[Judgment]:
        for number, trace in enumerate(missing_traces(store, dataset_id, mini.id, "offline")):
            if number == stop:
                raise KeyboardInterrupt
            done.append(trace.id)
            yield judge(trace, "offline")

    with pytest.raises(KeyboardInterrupt):
        save_judgments(store, mini.id, score(5))
    # What was scored before the interruption is kept.
    assert count_missing(store, dataset_id, mini.id, "offline") == 6
    assert save_judgments(store, mini.id, score(99)) == 6
    assert done == [str(i) for i in range(11)]
    assert list(missing_traces(store, dataset_id, mini.id, "offline")) == []


def test_slow_judgments_are_committed_on_the_way(store, traces, monkeypatch):
    monkeypatch.setattr(judgments, "_SECONDS", 0.0)
    mini = evaluator(store)

    def slow() -> Iterator[Judgment]:
        for number, trace in enumerate(traces):
            assert len(rows(store)) == number
            yield judge(trace, "offline")

    save_judgments(store, mini.id, slow())


def test_together_all_are_stored_or_none(store, traces, monkeypatch):
    monkeypatch.setattr(judgments, "_BATCH", 2)
    mini = evaluator(store)

    def failing() -> Iterator[Judgment]:
        yield from (judge(trace, "offline") for trace in traces[:3])
        raise UserError("no scores for the fourth")

    with refused(), store.write() as session:
        save_together(session, mini.id, failing())
    assert rows(store) == []
    with store.write() as session:
        assert save_together(session, mini.id, (judge(trace, "offline") for trace in traces)) == 4
    assert len(rows(store)) == 4


def test_a_score_of_the_whole_is_kept_and_replaced(store, traces):
    mini, made = evaluator(store), judge(traces[0], "offline")
    for solution in (None, 0.025, 0.5, None):
        save_judgments(store, mini.id, [replace(made, solution=solution)])
        assert [found.solution for found in read_judgments(store, traces[0])] == [solution]


@pytest.mark.parametrize("value", [np.nan, np.inf, -0.1, 1.1])
def test_a_value_that_is_no_probability(store, traces, value):
    wrong = scores(3).probs.copy()
    wrong[1, 2] = value
    with pytest.raises(ValueError, match="not a probability"):
        save_judgments(store, evaluator(store).id, [Judgment(traces[0], Mode.OFFLINE, StepScores(wrong))])
    assert rows(store) == []


def test_judgments_that_do_not_fit_their_trace_are_refused(store, traces):
    mini = evaluator(store)
    for wrong in (
        Judgment(traces[0], Mode.OFFLINE, scores(2)),
        Judgment(traces[0], Mode.OFFLINE, triangle(3)),
        Judgment(traces[0], Mode.HINDSIGHT, scores(3)),
        judge(ERROR, "offline"),
    ):
        with refused(ValueError):
            save_judgments(store, mini.id, [wrong])
    assert rows(store) == []


def test_what_was_scored_before_the_trace_changed_is_not_stored(store, traces):
    mini, trace = evaluator(store), traces[0]
    now, before = judge(trace, "hindsight", 1), judge(replace(trace, problem="What it was before"), "offline", 2)
    save_judgments(store, mini.id, [now, before])
    (judgment,) = read_judgments(store, trace)
    assert same(judgment.result, now.result)


def test_a_changed_trace_loses_its_earlier_judgments_with_the_next_one(store, traces):
    mini, trace = evaluator(store), traces[0]
    save_judgments(store, mini.id, [judge(trace, "hindsight")])
    with store.write() as session:
        for table in ("judgments", "triangles"):
            session.execute(text(f"UPDATE {table} SET digest = 'before'"))
    save_judgments(store, mini.id, [judge(trace, "online")])
    assert [(judgment.mode, judgment.stale) for judgment in read_judgments(store, trace)] == [("online", False)]


def test_a_failed_write_is_tried_once_more(store, traces, monkeypatch):
    monkeypatch.setattr(judgments, "_BATCH", 4)
    attempts: list[int] = []

    def busy(*args: object, **options: object) -> None:
        attempts.append(1)
        if len(attempts) == 1:
            raise UserError("database is locked")
        insert_or_update(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(judgments, "insert_or_update", busy)
    with refused():
        save_judgments(store, evaluator(store).id, [judge(trace, "offline") for trace in traces])
    assert len(rows(store)) == 4


@pytest.mark.parametrize("mode", list(Mode))
def test_the_spread_of_an_ensemble_comes_back_and_replaces_another(store, traces, mode):
    mini, trace = evaluator(store), traces[0]
    made = judge(trace, mode)
    for shift in (0.125, 0.25):
        spread = np.arange(len(trace.substeps), dtype=np.float32) / 8 + np.float32(shift)
        save_judgments(store, mini.id, [replace(made, result=replace(made.result, spread=spread))])
        (read,) = read_judgments(store, trace)
        assert read.result.spread is not None
        np.testing.assert_array_equal(read.result.spread, spread)
        assert same(read.result, made.result)
    save_judgments(store, mini.id, [made])
    assert read_judgments(store, trace)[0].result.spread is None
