"""Critics: `stepsight score` and `stepsight evaluate` against a chat model's server on this machine."""

import io
import json

import pytest

from stepsight.core.judgment import Mode, Usage
from stepsight.core.trace import Trace
from stepsight.storage.judgments.judgments import count_missing, read_judgments
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from tests.chat_server import chat_server, shown, verdicts
from tests.local_server import Reply
from tests.storage.samples import add, write_lines

TRACES = [
    Trace.of("What is 1 + 1?", ["1 + 1 = 2", "so 2"], ["pos", "neu"], id="right"),
    Trace.of("What is 2 + 2?", ["2 + 2 = 5", "so 5"], ["neg", "neg"], id="wrong"),
    Trace.of("What is 3 + 3?", ["3 + 3 = 6", ["it is 6", "so 6"]], ["pos", "pos"], id="parted"),
]
FILE, DATASET = "score --input traces.jsonl", "score --dataset sums"


def is_of_wrong(body):
    return "2 + 2" in body["messages"][-1]["content"]


def gold(body):
    """Of the trace with a wrong step that it is wrong, of all others that they are right."""
    return verdicts(["neg" if is_of_wrong(body) else "pos"] * shown(body))


@pytest.fixture
def chat():
    with chat_server(gold) as server:
        yield server


@pytest.fixture(autouse=True)
def stored(sqlite_store, tmp_path):
    """The traces, as a dataset of a store and in a file."""
    rows = [
        {"id": trace.id, "problem": trace.problem, "steps": [list(step.substeps) for step in trace.steps]}
        for trace in TRACES
    ]
    write_lines(tmp_path / "traces.jsonl", rows)
    return add(sqlite_store, TRACES)


def name(chat, options=""):
    return f"critic:{chat.url}#m{options}"


def test_a_file_is_scored_with_rationale_and_tokens(typed, chat):
    """The traces take a call each, and the server one that tries it."""
    typed(f"{FILE} --evaluator", name(chat))


def test_options_are_those_of_the_address(typed, chat):
    outcome = typed.run(f"{FILE} --samples 3 --temperature 0.5 --evaluator", name(chat))
    assert outcome.rows[0]["evaluator"] == name(chat, ",samples=3,temperature=0.5")
    assert len(chat.asked) == 9


def test_a_preset_is_chosen_by_name(typed):
    with chat_server(lambda body: r"\boxed{correct} \boxed{incorrect}") as chat:
        for preset in ("thinkprm", "gpt"):
            typed(f"{FILE} --critic {preset} --evaluator", name(chat))


def test_a_dataset_is_judged_once_and_what_cannot_be_read_again(typed, sqlite_store, stored):
    confused = True

    def answer(body):
        return "I would say that it is wrong." if confused and is_of_wrong(body) else gold(body)

    with chat_server(answer) as chat:
        typed(f"{DATASET} --evaluator", name(chat))
        traces = list(iterate_traces(sqlite_store, find_dataset(sqlite_store, "sums").id))
        assert [len(read_judgments(sqlite_store, trace)) for trace in traces] == [1, 0, 1]
        confused = False
        chat.asked.clear()
        typed(f"{DATASET} --evaluator", name(chat))
        assert len(chat.asked) == 1
        chat.asked.clear()
        chat.tried.clear()
        typed(f"{DATASET} --evaluator", name(chat))
        # Nothing is missing, so the server is not even tried.
        assert chat.asked == chat.tried == []
    (judgment,) = read_judgments(sqlite_store, stored[1])
    assert judgment.spent == Usage(1, 0, 300, 20)
    assert judgment.rationale.startswith("**Step 1: neg.** since it is so 1")


def test_hindsight_says_what_it_takes_before_it_asks(typed, chat):
    # 2 + 2 + 3 beginnings.
    for line in (DATASET, FILE):
        typed(f"{line} --mode hindsight --evaluator", name(chat))
    assert chat.asked == chat.tried == []
    typed(f"{DATASET} --mode hindsight --yes --evaluator", name(chat))
    assert sorted(map(shown, chat.asked)) == [1, 1, 1, 2, 2, 2, 3]


@pytest.mark.parametrize(("answer", "calls"), [("y\n", 7), ("Yes\n", 7), ("\n", 0), ("no\n", 0), ("", 0)])
def test_on_a_terminal_it_asks(typed, chat, monkeypatch, answer, calls):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("stepsight.training.evaluate.completion.progress", lambda items, total, unit: items)
    outcome = typed.run(f"{DATASET} --mode hindsight --evaluator", name(chat), stdin=Terminal(answer))
    assert (outcome.code, len(chat.asked)) == (0 if calls else 2, calls)
    assert "Continue? [y/N]" in outcome.err
    assert ("cancelled; nothing was done" in outcome.err) == (calls == 0)


def test_figures_of_a_critic(typed, chat):
    line = "evaluate --dataset sums --json --draws 10"
    refused = typed.run(f"{line} --evaluator", name(chat))
    assert (refused.code, "hindsight of 3 traces takes 7 calls" in refused.err) == (2, True)
    rows = json.loads(typed.run(f"{line} --mode offline --evaluator", name(chat)).out)["rows"]
    figures = [
        (row["mode"], row["sol_f1"]) for row in rows if (row["errors"], row["evaluator"]) == ("invalid", name(chat))
    ]
    assert figures == [("offline", 1.0)]
    assert len(chat.asked) == 3
    # Without a name, nobody is asked, however much is missing.
    assert (typed.run(line).code, len(chat.asked)) == (0, 3)


def test_judgments_before_a_failure_are_kept(typed, sqlite_store):
    fails = True

    def answer(body):
        # The third may be asked before the failure of the second is seen.
        return Reply(501) if fails and any(map(is_of_wrong, chat.asked)) else gold(body)

    with chat_server(answer) as chat:
        broken = typed.run(f"{DATASET} --evaluator", name(chat, ",requests=1"))
        assert (broken.code, "answered chat/completions with status 501: it failed" in broken.err) == (2, True)
        assert count_missing(sqlite_store, find_dataset(sqlite_store, "sums").id, 1, Mode.OFFLINE) == 2
        fails = False
        outcome = typed.run(f"{DATASET} --evaluator", name(chat))
        assert (outcome.code, "2 traces judged by" in outcome.err) == (0, True)


def test_pages_ask_no_critic(typed, chat):
    typed("app --port 0 --evaluator", name(chat))
    assert chat.asked == []
