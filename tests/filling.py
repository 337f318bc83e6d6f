"""A small store with rows in every table, the same ones each time but for secrets that are drawn."""

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count

import numpy as np
from sqlalchemy import func, select, text

from stepsight.core.evidence import LeaveOneOut
from stepsight.core.hubs.hub_cache import HubModel
from stepsight.core.judgment import Judgment, Mode, Usage
from stepsight.core.scores import Outputs, StepScores
from stepsight.storage.backup import tables
from stepsight.storage.database import schema
from stepsight.storage.database.schema import FailedLoginRow, HomeRow, ServerSecretRow, now
from stepsight.storage.jobs.imports import BenchmarkImport, import_benchmark
from stepsight.storage.jobs.jobs import start_fetch, start_job
from stepsight.storage.judgments.evaluators import Threshold, register_evaluator, save_calibration
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.judgments.left_outs import save_left_out
from stepsight.storage.labelling.adjudication import decide
from stepsight.storage.labelling.annotation import NewEvent
from stepsight.storage.labelling.campaigns import add_guideline, create_campaign, set_annotators
from stepsight.storage.labelling.disputes import DisputeState, add_entry, open_dispute
from stepsight.storage.labelling.plan import CampaignPlan, CampaignView, Ordering, Shows
from stepsight.storage.labelling.queue import assign_next
from stepsight.storage.labelling.record import record
from stepsight.storage.people.logins import accept, invite, open_login
from stepsight.storage.people.users import Role, add_user, end_user
from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import StoredTrace, find_dataset, iterate_traces
from tests.storage.jobs.samples import send
from tests.storage.samples import scores, triangle, write_lines

ROWS = [
    {"id": "error", "problem": "What is $1 + 1$?", "steps": ["A sum.", ["So 1 + 1 = 3.", "Done."]],
     "labels": ["pos", "neg"], "level": 2, "generator": "hand", "answer": "2"},
    {"id": "clean", "problem": "Was ist 2 + 2 = ∑?", "steps": ["It is 4.", "Nice.", "So 4."],
     "labels": ["pos", "neu", "pos"]},
    {"id": "unlabelled", "problem": "What is 3 + 3?", "steps": ["It is 6.", "Yes."], "shares": [0.75, None]},
    {"id": "part", "problem": "What is 4 + 4?", "steps": ["It is 9.", "So 9."], "labels": ["neg", None]},
    {"id": "bad", "problem": "No steps.", "steps": []},
]  # fmt: skip
CONTROL = {"id": "gold", "problem": "What is 5 + 5?", "steps": ["add(5, 5)"], "labels": ["pos"]}
PERSON, PASSWORD = "ada", "a good long sentence"


@contextmanager
def steady_clock():
    """Let the store's clock begin at one moment and go on by a second each time it is read."""
    before, seconds = schema._clock, count()
    schema._clock = lambda: datetime(2026, 3, 1, 9, tzinfo=UTC) + timedelta(seconds=next(seconds))
    try:
        yield
    finally:
        schema._clock = before


def fill(store, folder):
    """Put rows into every table of an empty store; `folder` is for files on the way. Raises `AssertionError` if a
    table stays empty."""
    with steady_clock():
        _fill(store, folder)
    with store.read() as session:
        empty = [one.name for one in tables() if not session.scalar(select(func.count()).select_from(one))]
    assert empty == []


def _fill(store, folder):
    with store.write() as session:
        # It decides which hidden gold comes to whom.
        session.add(ServerSecretRow(name="pseudonyms", secret=b"of the tests"))
        session.add(schema.DeletedRow(name="old"))
    ada = add_user(store, PERSON, Role.ADMIN, PASSWORD)
    people = [add_user(store, name, Role.ANNOTATOR, None) for name in ("ben", "cleo")]
    add_user(store, "gone", Role.VIEWER, None)
    end_user(store, "gone")
    folder.mkdir(exist_ok=True)
    import_file(store, "plain", write_lines(folder / "sums.jsonl", ROWS), "sums", skipped=folder / "skipped.jsonl")
    import_file(store, "plain", write_lines(folder / "control.jsonl", [CONTROL]), "control")
    traces = list(iterate_traces(store, find_dataset(store, "sums").id))
    mini = _judge(store, traces)
    _label(store, ada, people, mini)
    _dispute(store, ada, people[0], traces[0])
    _log_in(store, ada)
    _queue_jobs(store, ada, traces[0].dataset_id)


def _judge(store, traces):
    """Judgments of each mode and of each kind of evaluator, one of them of an earlier trace; returns the id of an
    evaluator."""
    info = {"thresholds": {"validity": 0.4, "redundancy": 0.2}, "parameters": 1234, "files": {"a": "b"}}
    made = [
        register_evaluator(
            store, name=name, fingerprint=f"of {name}", format=format, attention=attention, info=more
        )
        for name, format, attention, more in (
            ("mini", "stepsight", "bidirectional", info),
            ("causal", "stepsight", "causal", {}),
            ("binary", "imported", "unknown", {"outputs": Outputs.VALIDITY.value}),
            ("verdicts", "imported", "unknown", {"outputs": Outputs.VERDICT.value}),
        )
    ]
    mini, causal, binary, verdicts = (one.id for one in made)
    sizes = {trace.id: len(trace.substeps) for trace in traces}
    save_judgments(store, mini, [Judgment(one, Mode.HINDSIGHT, triangle(sizes[one.id])) for one in traces])
    save_judgments(store, mini, [Judgment(traces[0], Mode.OFFLINE, scores(sizes["error"], 5))])
    spread = np.full(sizes["clean"], 0.125, np.float32)
    ensemble = StepScores(scores(sizes["clean"], 7).probs, spread)
    save_judgments(store, causal, [Judgment(traces[1], Mode.ONLINE, ensemble, solution=0.25)])
    valid = np.linspace(0.1, 0.9, sizes["error"], dtype=np.float32)
    pairs = StepScores(np.stack([1 - valid, np.zeros_like(valid), valid], axis=1))
    save_judgments(store, binary, [Judgment(traces[0], Mode.OFFLINE, pairs)])
    silent = StepScores(np.array([[1, 0, 0], [0, 0, 0]], np.float32))
    words = {"rationale": "3 + 3 is 6, not 7.", "spent": Usage(2, 1, 300, 40)}
    save_judgments(store, verdicts, [Judgment(traces[2], Mode.OFFLINE, silent, 0.0, **words)])
    whole = scores(sizes["error"], 3)
    with store.write() as session:
        save_left_out(session, causal, traces[0], LeaveOneOut.of(whole, {0: scores(sizes["error"] - 1, 4).probs}))
        for table in ("judgments", "triangles"):
            stale = text(f"UPDATE {table} SET digest = 'earlier' WHERE trace_id = :id")
            session.execute(stale, {"id": traces[3].trace_id})
    save_calibration(store, mini, find_dataset(store, "sums"), Threshold.VALIDITY, 0.375, {"metric": "f1"})
    return mini


def _label(store, ada, people, evaluator):
    """A blind campaign that goes step by step, labelled twice and decided, and one that shows scores, suggests
    labels and is restricted to one person."""
    ben, cleo = people
    plan = CampaignPlan(
        name="blind", dataset="sums", guideline="Is it right?", overlap=2,
        view=CampaignView.STEPWISE, ordering=Ordering.FILE, gold_rate=0.5, gold_dataset="control",
    )  # fmt: skip
    blind = create_campaign(store, plan, ada)
    add_guideline(store, blind.id, "Is it right, and why?", ada)
    task = _take(store, blind, ben)
    _do(store, task, ben, "label", 0, "unsure")
    _do(store, task, ben, "label", 0, "pos")
    _do(store, task, ben, "comment", 0, "Ünsure ∑ <b>")
    record(store, task.slot, ben, NewEvent(key="undo", cause="undo"))
    _finish(store, task, ben, "pos")
    _finish(store, _take(store, blind, ben), ben, "pos")
    task = _take(store, blind, cleo)
    _finish(store, task, cleo, "neg")
    decide(store, blind.id, task.item_id, 0, "neg", "It is wrong.", ada, "decision-1")
    held = _take(store, blind, ben)
    _do(store, held, ben, "flag", None, "odd")
    changes = {
        "name": "shown", "overlap": 1, "gold_rate": 0.0, "gold_dataset": None, "view": CampaignView.WHOLE,
        "shows": Shows.SCORES, "evaluator": evaluator, "suggests": True, "shows_equations": True, "sample": 2,
    }  # fmt: skip
    made = create_campaign(store, plan.model_copy(update=changes), ada)
    set_annotators(store, made.id, [cleo.id], ada)
    task = _take(store, made, cleo)
    _do(store, task, cleo, "label", 0, "neg")
    _do(store, task, cleo, "skip", None, "Too hard.")
    token = invite(store, Role.ANNOTATOR, "dora", ada, made.id)
    accept(store, token, "", PASSWORD)
    invite(store, Role.VIEWER, None, ada)


def _take(store, campaign, person):
    task = assign_next(store, campaign.id, person)
    assert task is not None
    return task


def _do(store, task, person, kind, step, new):
    key = f"{kind}-{step}-{person.name}-{task.item_id}-{new}".replace(" ", "_").encode("ascii", "ignore").decode()
    record(store, task.slot, person, NewEvent(key=key, kind=kind, step=step, new=new, seconds=1.5))


def _finish(store, task, person, label):
    steps = len(task.trace.steps)
    for step in range(steps):
        if step:
            _do(store, task, person, "reveal", None, step + 1)
        _do(store, task, person, "label", step, label)
    if label == "neg":
        _do(store, task, person, "error", steps - 1, task.campaign.error_kinds[0])
        _do(store, task, person, "correction", steps - 1, "1 + 1 = 2")
    _do(store, task, person, "submit", None, None)


def _dispute(store, ada, ben, trace):
    assert isinstance(trace, StoredTrace)
    dispute = open_dispute(store, trace.trace_id, 1, "pos", "It is right.", ben)
    add_entry(store, dispute.id, ada, "So it is.", DisputeState.ACCEPTED)


def _log_in(store, ada):
    open_login(store, ada)
    with store.write() as session:
        session.add(FailedLoginRow(key="name of nobody", moment=now() - timedelta(seconds=5)))
        session.add(HomeRow(key="ada at home", moment=now()))


def _queue_jobs(store, ada, dataset_id):
    """A job of each kind, and a file that a browser has sent."""
    start_job(store, dataset_id, evaluator="mini", spec="mini", fingerprint="of mini", mode=Mode.HINDSIGHT)
    import_benchmark(store, BenchmarkImport("mr-math-invalid"))
    start_fetch(store, HubModel(repo="lab/prm", revision="c" * 40, files={"model.safetensors": 15_200_000_000}))
    content = b'{"problem": "q", "steps": ["a"]}\n'
    send(store, ada.id, content)
