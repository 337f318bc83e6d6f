"""Critics as they are typed: `stepsight score` and `stepsight evaluate` against a server on this machine."""

import io
import json

import pytest

from stepsight.core.judgment import Mode, Usage
from stepsight.core.trace import Trace
from stepsight.storage.database.store import open_store
from stepsight.storage.judgments.judgments import count_missing, read_judgments
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from tests.chat_server import Body, Refusal, chat_server, shown, verdicts
from tests.storage.samples import add

TRACES = [
    Trace.of("What is 1 + 1?", ["1 + 1 = 2", "so 2"], ["pos", "neu"], id="right"),
    Trace.of("What is 2 + 2?", ["2 + 2 = 5", "so 5"], ["neg", "neg"], id="wrong"),
    Trace.of("What is 3 + 3?", ["3 + 3 = 6", ["it is 6", "so 6"]], ["pos", "pos"], id="parted"),
]


def gold(body):
    """Of the trace with a wrong step that it is wrong, of all others that they are right."""
    wrong = "2 + 2 = 5" in body["messages"][-1]["content"]
    return verdicts(["neg" if wrong else "pos"] * shown(body))


@pytest.fixture
def chat():
    with chat_server(gold) as server:
        yield server


@pytest.fixture
def db(sqlite_store):
    add(sqlite_store, TRACES)
    return sqlite_store.name


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "traces.jsonl"
    rows = [
        {"id": one.id, "problem": one.problem, "steps": [list(step.substeps) for step in one.steps]}
        for one in TRACES
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def name(chat, options=""):
    return f"critic:{chat.url}#m{options}"


def test_a_file_is_scored_with_rationale_and_tokens(command, chat, file):
    code, out, err = command("score", "--input", file, "--evaluator", name(chat))
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [row["id"] for row in rows] == ["right", "wrong", "parted"]
    assert [row["offline"]["solution"]["valid"] for row in rows] == [True, False, True]
    assert rows[1]["rationale"] == "**Step 1: neg.** since it is so 1\n\n**Step 2: neg.** since it is so 2"
    assert rows[1]["spent"] == {"calls": 1, "unread": 0, "prompt_tokens": 300, "completion_tokens": 20}
    assert f"{name(chat)}: a critic by the preset steps" in err
    # Three, and the one that tries the server.
    assert f"{name(chat)}: 4 calls, 1,200 tokens read and 80 written." in err


def test_options_are_those_of_the_address(command, chat, file):
    code, out, _ = command(
        "score", "--input", file, "--evaluator", name(chat), "--samples", 3, "--temperature", 0.5
    )
    assert code == 0
    assert json.loads(out.splitlines()[0])["evaluator"] == name(chat, ",samples=3,temperature=0.5")
    assert len(chat.asked) == 9
    code, _, err = command("score", "--input", file, "--samples", 3)
    assert code == 2
    assert "--critic, --samples and --temperature go with a critic." in err


def test_a_preset_is_chosen_by_name(command, file):
    with chat_server(lambda body: r"\boxed{correct} \boxed{incorrect}") as chat:
        code, out, err = command("score", "--input", file, "--evaluator", name(chat), "--critic", "thinkprm")
        rows = [json.loads(line) for line in out.splitlines()]
        assert [[step["validity"] for step in row["offline"]["steps"]] for row in rows] == [
            [1, 0],
            [1, 0],
            [1, 0, 0],
        ]
        assert code == 0
        assert "preset thinkprm" in err
        code, _, err = command("score", "--input", file, "--evaluator", name(chat), "--critic", "gpt")
        assert (code, "no critic's preset 'gpt'" in err) == (2, True)


def test_a_dataset_is_judged_once_and_what_cannot_be_read_again(command, sqlite_store, db):
    confused = True

    def answer(body: Body) -> object:
        is_wrong = "2 + 2" in body["messages"][-1]["content"]
        return "I would say that it is wrong." if confused and is_wrong else gold(body)

    with chat_server(answer) as chat:
        code, _, err = command("score", "--dataset", "sums", "--evaluator", name(chat), "--db", db)
        assert code == 0
        assert "sums: 2 traces judged by" in err
        told = "1 trace has no judgment, and will be asked about again: 1: no JSON (first 'wrong')."
        assert told in err
        stored = list(iterate_traces(sqlite_store, find_dataset(sqlite_store, "sums").id))
        assert [len(read_judgments(sqlite_store, one)) for one in stored] == [1, 0, 1]
        confused = False
        chat.asked.clear()
        code, _, err = command("score", "--dataset", "sums", "--evaluator", name(chat), "--db", db)
        assert "sums: 1 traces judged by" in err
        assert len(chat.asked) == 1
        chat.asked.clear()
        chat.tried.clear()
        assert command("score", "--dataset", "sums", "--evaluator", name(chat), "--db", db)[0] == 0
        # Nothing is missing, so the server is not even tried.
        assert chat.asked == chat.tried == []
    (judgment,) = read_judgments(sqlite_store, stored[1])
    assert judgment.spent == Usage(1, 0, 300, 20)
    assert judgment.rationale.startswith("**Step 1: neg.** since it is so 1")


def test_hindsight_says_what_it_takes_before_it_asks(command, chat, db, file, monkeypatch):
    dataset = ("score", "--dataset", "sums", "--evaluator", name(chat), "--db", db, "--mode", "hindsight")
    monkeypatch.setattr("sys.stdin", io.StringIO())
    for line in (dataset, ("score", "--input", file, "--evaluator", name(chat), "--mode", "hindsight")):
        code, out, err = command(*line)
        assert (code, out) == (2, "")
        # 2 + 2 + 3 beginnings.
        assert f"{name(chat)}: hindsight of 3 traces takes 7 calls and about " in err
        assert "Give --yes to go on" in err
    assert chat.asked == chat.tried == []
    code, out, err = command(*dataset, "--yes")
    assert code == 0
    assert "takes 7 calls" in err
    assert sorted(map(shown, chat.asked)) == [1, 1, 1, 2, 2, 2, 3]


@pytest.mark.parametrize(("typed", "calls"), [("y\n", 7), ("Yes\n", 7), ("\n", 0), ("no\n", 0), ("", 0)])
def test_on_a_terminal_it_asks(command, chat, db, monkeypatch, typed, calls):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal(typed))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("stepsight.training.evaluate.completion.progress", lambda items, total, unit: items)
    code, _, err = command(
        "score", "--dataset", "sums", "--evaluator", name(chat), "--db", db, "--mode", "hindsight"
    )
    assert (code, len(chat.asked)) == (0 if calls else 2, calls)
    assert "Go on? [y/N]" in err
    assert ("cancelled, nothing was done" in err) == (calls == 0)


def test_figures_of_a_critic(command, chat, db):
    asked = ("evaluate", "--dataset", "sums", "--evaluator", name(chat), "--db", db, "--json", "--draws", 10)
    code, _, err = command(*asked)
    assert code == 2
    assert "hindsight of 3 traces takes 7 calls" in err
    code, out, _ = command(*asked, "--mode", "offline")
    rows = [row for row in json.loads(out)["rows"] if row["errors"] == "invalid" and row["evaluator"] == name(chat)]
    assert code == 0
    assert [(row["mode"], row["sol_f1"]) for row in rows] == [("offline", 1.0)]
    assert len(chat.asked) == 3
    # Without a name, nobody is asked, however much is missing.
    code, out, _ = command("evaluate", "--dataset", "sums", "--db", db, "--json", "--draws", 10)
    assert (code, len(chat.asked)) == (0, 3)


def test_judgments_before_a_failure_are_kept(command, db):
    fails = True

    def answer(body: Body) -> object:
        return Refusal(501) if fails and "2 + 2" in body["messages"][-1]["content"] else gold(body)

    with chat_server(answer) as chat:
        code, _, err = command("score", "--dataset", "sums", "--evaluator", f"{name(chat)},requests=1", "--db", db)
        assert code == 2
        assert "answers 501 to chat/completions: it failed" in err
        with open_store(db) as store:
            dataset = find_dataset(store, "sums")
            assert count_missing(store, dataset.id, 1, Mode.OFFLINE) == 2
        fails = False
        code, _, err = command("score", "--dataset", "sums", "--evaluator", name(chat), "--db", db)
        assert (code, "2 traces judged by" in err) == (0, True)


def test_pages_ask_no_critic(command, chat, db):
    code, _, err = command("app", "--evaluator", name(chat), "--db", db, "--port", 0)
    assert code == 2
    assert "pages only show stored judgments of critics" in err
    assert chat.asked == []
