"""What Browse lists, against a plain reading of the same traces and judgments one by one."""

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.metrics.first_error import Outcome, count_outcomes, first_errors, redundant_solutions
from stepsight.core.metrics.reasoneval import Errors, Level, items
from stepsight.core.scores import Hindsight, Outputs, StepScores, judge_solution
from stepsight.core.trace import Label, Step, Trace
from stepsight.storage.browse.browse import BrowseRow, browse, list_matching
from stepsight.storage.browse.filters import Sort, TraceFilter
from stepsight.storage.database.store import open_store
from stepsight.storage.judgments.columns import read_gold, read_table
from stepsight.storage.judgments.evaluators import Threshold, save_calibration
from stepsight.storage.judgments.judgments import StoredJudgment, read_many, save_judgments
from stepsight.storage.judgments.score_files import import_scores
from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import StoredTrace, find_dataset
from tests.messages import refused
from tests.storage.samples import CLEAN, ERROR, SAMPLES, add, evaluator, find_evaluator, judge, many, write_lines

FIELDS: dict[str, tuple[Any, ...]] = {
    "gold": ("error", "clean", "redundant", "not-redundant", "missing"),
    "group": ("algebra", "geometry"),
    "error_at": ("early", "middle", "late"),
    "verdict": ("valid", "invalid", "redundant", "unjudged"),
    "mistake": ("missed", "false-alarm", "wrong-step", "wrong", "right"),
    "modes": ("agree", "disagree"),
    "change": (0.1, 0.3, 0.5),
    "text": ("x^2", "ALPHA", "a", "3/4"),
    "length": ("1", "2-4"),
    "cell": tuple(f"{gold.text}-{called.text}" for gold in Label for called in Label),
}
JUDGED: tuple[tuple[str, ...], ...] = (
    ("hindsight",), ("hindsight", "online"), ("offline", "hindsight"), ("online", "offline"), ("offline",), (),
)  # fmt: skip


def drawn(count):
    """Traces of every kind of gold, of one to five steps with one to three sub-steps."""
    rng = random.Random(0)
    return [_draw(rng, number) for number in range(count)]


def _draw(rng, number):
    words = ["alpha", "Beta", "x^2 + 1", "3/4", "ÄÖ", "gamma"]
    texts = [tuple(rng.sample(words, rng.randint(1, 3))) for _ in range(rng.randint(1, 5))]
    kind = rng.choice(("labels", "first error", "valid", "part", "none"))
    golds: list[dict[str, Any]] = [{} for _ in texts]
    if kind == "labels":
        golds = [{"label": rng.choice(list(Label))} for _ in texts]
    elif kind != "none":
        known = len(texts) if kind == "valid" else rng.randint(1, len(texts))
        golds = [{"valid": True} if i < known else {} for i in range(len(texts))]
        if kind == "first error":
            golds[known - 1] = {"valid": False}
    steps = tuple(Step(one, **gold) for one, gold in zip(texts, golds, strict=True))
    meta = rng.choice(({}, {"question_type": "algebra"}, {"question_type": "geometry", "family": "other"}))
    return Trace(str(number), f"Problem {rng.choice(words)}", steps, meta)


@pytest.fixture
def judged(store):
    """Traces, most of them judged by two evaluators in various modes, some twice; the second has thresholds."""
    add(store, many(4), "elsewhere")
    traces = add(store, drawn(90))
    rng = random.Random(1)
    one, other = evaluator(store), evaluator(store, "other")
    for judge_of in (one, other):
        made = [(trace, mode) for trace in traces for mode in rng.choice(JUDGED)]
        save_judgments(store, judge_of.id, [judge(trace, mode, seed) for seed, (trace, mode) in enumerate(made)])
    dataset = find_dataset(store, "elsewhere")
    save_calibration(store, other.id, dataset, Threshold.VALIDITY, 0.7, {})
    return traces, one, other


class Said:
    """What an evaluator says of a trace, by mode, found without any column."""

    def __init__(self, trace: StoredTrace, judgments: list[StoredJudgment], cut: float) -> None:
        by_age = sorted(judgments, key=lambda one: one.created)
        self.cut = cut
        self.scores: dict[str, StepScores | None] = {}
        self.valid: dict[str, bool | None] = {}
        triangle = next((one.hindsight for one in judgments if one.hindsight is not None), None)
        self.change = None if triangle is None else float(abs(triangle.retroactive).max())
        for mode in (Mode.ONLINE, Mode.OFFLINE):
            used = next((one for one in reversed(by_age) if one.mode in (mode, Mode.HINDSIGHT)), None)
            scores = None if used is None else used._scores(mode)
            self.scores[mode] = scores
            self.valid[mode] = None if scores is None else judge_solution(scores).validity >= cut


class Plain:
    """One trace as a filter sees it."""

    def __init__(self, trace: StoredTrace, where: TraceFilter, mine: Said, other: Said) -> None:
        self.trace, self.where, self.valid = trace, where, mine.valid
        self.scores, self.change = mine.scores[where.mode], mine.change
        self.other = other.valid[where.mode]
        self.mine, self.theirs = mine, other

    def values(self, name: str) -> set[Any]:
        """The values of a filter's field that this trace has."""
        return getattr(self, f"_{name}")()  # type: ignore[no-any-return]

    def meets(self, name: str) -> bool:
        wanted = getattr(self.where, name)
        if name == "text":
            return any(wanted.lower() in part.lower() for part in (self.trace.problem, *self.trace.substeps))
        if name == "against":
            mine = self.valid[self.where.mode]
            return mine is not None and self.other is not None and mine != self.other
        if name == "length":
            return len(self.trace.steps) in range(int(wanted[0]), int(wanted[-1]) + 1)
        if name == "change":
            return self.change is not None and self.change >= wanted
        return wanted in self.values(name)

    def _gold(self) -> set[str]:
        labels = self.trace.labels
        redundant = {"redundant"} if Label.NEU in labels else set() if None in labels else {"not-redundant"}
        if self.trace.first_error is not None:
            return {"error"} | redundant
        return {"clean" if self.trace.has_gold else "missing"} | redundant

    def _group(self) -> set[str]:
        meta = self.trace.meta
        return {meta["question_type"]} if "question_type" in meta else set()

    def _error_at(self) -> set[str]:
        first, count = self.trace.first_error, len(self.trace.steps)
        if first is None:
            return set()
        place = first / count
        return {"early" if place < 1 / 3 else "middle" if place < 2 / 3 else "late"}

    def _verdict(self) -> set[str]:
        if self.scores is None:
            return {"unjudged"}
        verdict = judge_solution(self.scores)
        return {"valid" if verdict.valid else "invalid"} | ({"redundant"} if verdict.redundant else set())

    def _mistake(self) -> set[str]:
        return self._mistake_of(self.mine)

    def _other_mistake(self) -> set[str]:
        return self._mistake_of(self.theirs)

    def _mistake_of(self, said: Said) -> set[str]:
        gold, scores = self.trace.first_error, said.scores[self.where.mode]
        known = gold is not None or all(step.valid for step in self.trace.steps)
        if scores is None or not known:
            return set()
        steps = scores.by_step(self.trace.owners).validity
        found = next((i for i, validity in enumerate(steps) if validity < np.float32(said.cut)), None)
        if gold == found:
            return {"right"}
        if found is None:
            return {"missed", "wrong"}
        return {"false-alarm" if gold is None else "wrong-step", "wrong"}

    def _modes(self) -> set[str]:
        online, offline = self.valid.values()
        if online is None or offline is None:
            return set()
        return {"agree" if online == offline else "disagree"}

    def _change(self) -> set[str]:
        return {f"{least:g}" for least in (0.1, 0.3, 0.5) if self.change is not None and self.change >= least}

    def _cell(self) -> set[str]:
        if self.scores is None:
            return set()
        called = self.scores.by_step(self.trace.owners).probs.argmax(axis=1)
        pairs = zip(self.trace.labels, called, strict=True)
        return {f"{gold.text}-{Label(int(label)).text}" for gold, label in pairs if gold is not None}

    def key(self, by: str) -> float | None:
        if by == "position":
            return self.trace.position
        if by == "steps":
            return len(self.trace.steps)
        if by == "error":
            return self.trace.first_error
        if by == "change":
            return self.change
        if self.scores is None:
            return None
        return getattr(judge_solution(self.scores), by)  # type: ignore[no-any-return]


def filters(one, other, count):
    """Random combinations of up to four conditions, with a random order."""
    rng = random.Random(2)
    for _ in range(count):
        names = rng.sample([*FIELDS, "against", "other_mistake"], rng.randint(0, 4))
        values = FIELDS | {"against": (other,), "other_mistake": FIELDS["mistake"]}
        chosen = {name: rng.choice(values[name]) for name in names} | {"other": other}
        by = rng.choice(("position", "validity", "redundancy", "change", "steps", "error", "doubt"))
        where = TraceFilter(evaluator=one, mode=rng.choice(("online", "offline")), **chosen)
        # Not every trace is ranked, and no trace has the id 0.
        ranked = tuple(rng.sample(range(60), 40)) if by == "doubt" else ()
        yield where, Sort(by, rng.random() < 0.5, ranked)  # type: ignore[arg-type]


def test_any_filter_lists_counts_and_sorts_as_reading_one_by_one_does(store, judged):
    traces, one, other = judged
    dataset_id = traces[0].dataset_id
    mine, theirs = (
        [Said(*said, cut) for said in zip(traces, read_many(store, traces, who.id), strict=True)]
        for who, cut in ((one, 0.5), (other, 0.7))
    )
    everything = list(zip(traces, mine, theirs, strict=True))
    met: Counter[str] = Counter()
    for where, sort in filters(one.id, other.id, 120):
        plain = [Plain(trace, where, said, their) for trace, said, their in everything]
        names = [name for name in (*FIELDS, "against", "other_mistake") if where.is_set(name)]
        kept = [one for one in plain if all(one.meets(name) for name in names)]
        page = browse(store, dataset_id, where, sort, limit=1000)
        ordered = _sorted(kept, sort)
        assert [row.trace_id for row in page.rows] == ordered, (where, sort)
        assert page.total == len(kept)
        assert list_matching(store, dataset_id, where, sort) == ordered
        for name in page.counts:
            others = [one for one in plain if all(one.meets(n) for n in names if n != name)]
            expected = Counter(value for one in others for value in one.values(name))
            assert page.counts[name] == {value: expected[value] for value in page.counts[name]}, (where, name)
            assert set(expected) <= set(page.counts[name])
            if name in names:
                assert page.loosened[name] == len(others)
        assert set(page.loosened) == set(names)
        met.update(names if kept else [])
    # The comparison is of more than empty lists, and of every condition that has no tests of its own.
    others = ("evaluator", "mode", "other", "errors", "meta", "bin")
    assert [name for name in TraceFilter.model_fields if name not in others and met[name] < 2] == []


def _sorted(kept, sort):
    sign = -1 if sort.descending else 1
    places = {trace_id: place for place, trace_id in enumerate(sort.ranked)}
    keys = [(places.get(one.trace.trace_id) if sort.by == "doubt" else one.key(sort.by), one.trace) for one in kept]
    # What has no key comes last, either way.
    places = [(key is None, sign * (key or 0), trace.position, trace.trace_id) for key, trace in keys]
    return [trace_id for *_, trace_id in sorted(places)]


def test_a_row_says_what_the_evaluator_says(store):
    trace = add(store, [CLEAN, ERROR])[1]
    mini = evaluator(store)
    judgment = judge(trace, "hindsight", seed=4)
    made = judgment.result
    assert isinstance(made, Hindsight)
    save_judgments(store, mini.id, [judgment])
    clean, row = browse(store, trace.dataset_id, TraceFilter(evaluator=mini.id, mode="online")).rows
    online = judge_solution(made.online).validity
    steps = made.online.by_step(trace.owners).validity
    assert row == BrowseRow(
        trace_id=trace.trace_id, id="error", position=1, problem="What is 1 + 1?", n_steps=2, n_substeps=3,
        first_error=1, has_gold=True, n_redundant=0, group="", validity=online, online_validity=online,
        offline_validity=judge_solution(made.offline).validity,
        redundancy=judge_solution(made.online).redundancy, online_redundancy=judge_solution(made.online).redundancy,
        offline_redundancy=judge_solution(made.offline).redundancy,
        change=float(np.abs(made.retroactive).max()),
        first_wrong=next((i for i, value in enumerate(steps) if value < 0.5), None),
        mistake=row.mistake,
    )  # fmt: skip
    assert row.mistake
    # The gallery's own word for the class, and nothing where nothing was said.
    assert (clean.group, clean.validity, clean.change, clean.mistake) == ("hand", None, None, "")
    bare = browse(store, trace.dataset_id).rows
    assert [one.validity for one in bare] == [None, None]


def test_pages(store):
    add(store, many(25), "other")
    dataset_id = add(store, many(25))[0].dataset_id
    page = browse(store, dataset_id, TraceFilter(gold="clean"), limit=3, offset=2)
    # 1, 4, 7, 10, 13, … 22 have gold without an error.
    assert ([row.id for row in page.rows], page.total) == (["7", "10", "13"], 8)
    assert page.counts["gold"] == {
        "error": 9,
        "clean": 8,
        "redundant": 0,
        "not-redundant": 0,
        "missing": 8,
    }
    assert page.loosened == {"gold": 25}
    for limit, offset in ((10, 25), (10, 10**30), (0, 0)):
        empty = browse(store, dataset_id, limit=limit, offset=offset)
        assert (empty.rows, empty.total) == ([], 25)
    with pytest.raises(ValueError, match="limit -1"):
        browse(store, dataset_id, limit=-1)
    with pytest.raises(ValueError, match="offset -1"):
        browse(store, dataset_id, offset=-1)


def test_an_unknown_dataset_is_empty(store):
    page = browse(store, 99, TraceFilter(gold="error", text="x^2", evaluator=3, verdict="valid"), Sort("validity"))
    assert (page.rows, page.total) == ([], 0)
    assert set(page.counts["gold"].values()) == {0}


def test_conditions_on_verdicts_without_an_evaluator_are_refused(store):
    add(store)
    conditions: list[dict[str, Any]] = [{"verdict": "valid"}, {"mistake": "right"}, {"modes": "agree"}]
    for where in (*conditions, {"against": 1}, {"change": 0.1}, {"cell": "neg-pos"}):
        with refused():
            browse(store, 1, TraceFilter(**where))
    for sort in (Sort("validity"), Sort("redundancy"), Sort("change")):
        with refused():
            browse(store, 1, sort=sort)
    with refused():
        Sort("speed")  # type: ignore[arg-type]


def totals(store, evaluator_id, **where):
    return browse(store, 1, TraceFilter(evaluator=evaluator_id, **where))


def test_judgments_are_seen_as_soon_as_they_are_stored(store):
    traces = add(store)
    mini = evaluator(store)
    assert totals(store, mini.id).counts["verdict"] == {"invalid": 0, "valid": 0, "redundant": 0, "unjudged": 4}
    sure = StepScores(np.array([[0.1, 0.1, 0.8]] * 3, np.float32))
    save_judgments(store, mini.id, [Judgment(traces[0], Mode.OFFLINE, sure)])
    assert totals(store, mini.id).counts["verdict"] == {"invalid": 0, "valid": 1, "redundant": 0, "unjudged": 3}
    unsure = StepScores(np.array([[0.6, 0.2, 0.2]] * 3, np.float32))
    save_judgments(store, mini.id, [Judgment(traces[0], Mode.OFFLINE, unsure)])
    assert totals(store, mini.id).counts["verdict"] == {"invalid": 1, "valid": 0, "redundant": 1, "unjudged": 3}
    save_calibration(store, mini.id, find_dataset(store, "sums"), Threshold.VALIDITY, 0.3, {})
    assert totals(store, mini.id).counts["verdict"] == {"invalid": 0, "valid": 1, "redundant": 1, "unjudged": 3}


def test_another_process_is_noticed(address):
    with open_store(address) as ours, open_store(address) as theirs:
        traces = add(theirs)
        mini = evaluator(theirs)
        assert browse(ours, 1, TraceFilter(text="it is")).total == 3
        assert totals(ours, mini.id, verdict="unjudged").total == 4
        save_judgments(theirs, mini.id, [judge(traces[1], "online")])
        assert totals(ours, mini.id, verdict="unjudged", mode="online").total == 3
        add(theirs, [*SAMPLES, replace(CLEAN, id="more")])
        assert browse(ours, 1, TraceFilter(text="it is")).total == 4


def test_deleted_traces_are_gone_and_ids_used_again_are_not_taken_for_them(store):
    traces = add(store)
    mini = evaluator(store)
    save_judgments(store, mini.id, [judge(trace, "hindsight") for trace in traces])
    assert browse(store, 1, TraceFilter(text="it is")).total == 3
    with store.write() as session:
        session.execute(text("DELETE FROM traces WHERE position IN (1, 3)"))
    assert [row.id for row in browse(store, 1).rows] == ["error", "missing"]
    assert browse(store, 1, TraceFilter(text="it is")).total == 2
    assert totals(store, mini.id, verdict="unjudged").total == 0
    with store.read() as session:
        assert session.scalar(text("SELECT count(*) FROM triangles")) == 2
    # SQLite gives the last id again.
    add(store, [*SAMPLES, Trace.of("Another?", ["Nothing."], id="another")])
    page = totals(store, mini.id)
    assert [row.id for row in page.rows if row.validity is None] == ["clean", "first", "another"]
    assert browse(store, 1, TraceFilter(text="it is")).total == 3


def test_a_deleted_dataset_is_not_taken_for_the_one_in_its_place(store):
    traces = add(store)
    mini = evaluator(store)
    save_judgments(store, mini.id, [judge(trace, "offline") for trace in traces])
    assert totals(store, mini.id, verdict="unjudged").total == 0
    with store.write() as session:
        session.execute(text("DELETE FROM datasets"))
    assert browse(store, 1).total == 0
    dataset_id = add(store, many(4), "new")[0].dataset_id
    page = browse(store, dataset_id, TraceFilter(evaluator=mini.id, verdict="unjudged"))
    assert [row.id for row in page.rows] == ["0", "1", "2", "3"]
    with store.read() as session:
        assert session.scalar(text("SELECT count(*) FROM triangles")) == 0


def test_a_stale_judgment_counts_as_none(store):
    traces = add(store)
    mini = evaluator(store)
    save_judgments(store, mini.id, [judge(trace, "hindsight") for trace in traces])
    with store.write() as session:
        session.execute(text("UPDATE traces SET digest = 'other' WHERE id = :id"), {"id": traces[0].trace_id})
    assert [row.id for row in totals(store, mini.id, verdict="unjudged").rows] == ["error"]


def words(word, step):
    return {"correctness_pred": word, "error_step_pred": step}


@pytest.mark.parametrize(
    ("said", "verdicts", "mistakes"),
    [
        # ROSCOE is cut at 0.025, as in ReasonEval's script, and says nothing of steps.
        (({"scores": 0.02}, {"scores": 0.03}), (1, 1, 0, 0), [(None, ""), (None, "")]),
        # Nothing is said of the steps behind the blame, which decides.
        ((words("Wrong", "Step 2"), words("Wrong", "Step 1")), (2, 0, 0, 0), [(1, "right"), (0, "false-alarm")]),
        # What could not be read is no verdict, and one on redundancy says nothing of validity.
        ((words("Unsure", "N/A"), words("Correct", "N/A")), (0, 1, 0, 1), [(None, ""), (None, "right")]),
        ((words("Present", "Step 1"), words("Absent", "")), (0, 0, 1, 0), [(None, ""), (None, "")]),
        # ERROR's second step is called by its least valid sub-step.
        (({"scores": [0.9, 0.2, 0.7]}, {"scores": [0.9] * 3}), (1, 1, 0, 0), [(1, "right"), (None, "right")]),
    ],
    ids=["solution", "words", "unread", "redundancy", "validity"],
)
def test_what_is_known_of_an_evaluator_by_its_score_file(store, tmp_path, said, verdicts, mistakes):
    add(store, [ERROR, Trace.of("p", ["a", "b", "c"], ["pos"] * 3, id="valid")])
    rows = [{"id": id} | row for id, row in zip(("error", "valid"), said, strict=True)]
    import_scores(store, "sums", write_lines(tmp_path / "scores.jsonl", rows), "theirs")
    page = totals(store, find_evaluator(store, "imported:theirs").id)
    assert tuple(page.counts["verdict"].values()) == verdicts
    assert [(row.first_wrong, row.mistake) for row in page.rows] == mistakes


def test_published_scores_are_listed_as_they_are_measured(sqlite_store, data):
    """VerdictColumns and mistakes of every evaluator of MR-MATH against what the metrics count."""
    store = sqlite_store
    for errors in Errors:
        name = f"mr-math-{errors}"
        import_file(store, name, data / f"mr-math/mr-math_{errors}_errors.json")
        gold = read_gold(store, find_dataset(store, name))
        for path in sorted((data / "mr-math/scores" / errors).iterdir()):
            import_scores(store, name, path, path.stem)
            theirs = find_evaluator(store, f"imported:{path.stem}")
            table = read_table(store, gold, theirs.id, Mode.OFFLINE)
            found = redundant_solutions(table, theirs.outputs)
            by_default = browse(store, gold.dataset.id, TraceFilter(evaluator=theirs.id))
            assert by_default.on_redundancy == (errors == Errors.REDUNDANT)
            if errors == Errors.REDUNDANT:
                assert len(found.trace) + found.no_verdict == 300
                assert by_default.counts["mistake"] == {**count_outcomes(found), "wrong": int((~found.hit).sum())}
            page = browse(store, gold.dataset.id, TraceFilter(evaluator=theirs.id, errors="invalid"))
            assert page.total == len(gold.ids)
            verdicts, mistakes = page.counts["verdict"], page.counts["mistake"]
            on_redundancy = theirs.outputs == Outputs.VERDICT and errors == Errors.REDUNDANT
            if theirs.outputs == Outputs.SOLUTION or on_redundancy:
                assert set(mistakes.values()) == {0}
            else:
                counts = count_outcomes(first_errors(table))
                wrong = sum(number for outcome, number in counts.items() if outcome != Outcome.RIGHT)
                assert mistakes == {**counts, "wrong": wrong}
                assert sum(counts.values()) == len(gold.ids)
            if theirs.outputs == Outputs.VERDICT:
                said = table.solution[~np.isnan(table.solution)]
                kinds = ("redundant", "") if on_redundancy else ("invalid", "valid")
                assert [verdicts.get(kind, int(said.sum())) for kind in kinds] == [(said == 0).sum(), said.sum()]
                assert verdicts["unjudged"] == len(gold.ids) - len(said)
            elif errors == Errors.INVALID:
                predicted = items(table, errors, Level.SOLUTION, theirs.outputs).predicted
                assert (verdicts["valid"], verdicts["invalid"]) == (predicted.sum(), (~predicted).sum())
            elif theirs.outputs == Outputs.THREE_WAY:
                predicted = items(table, errors, Level.SOLUTION).predicted
                assert verdicts["redundant"] == (~predicted).sum()
