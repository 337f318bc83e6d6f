"""Tables with generic names whose meaning is known: marks of whole solutions, references beside responses, several
solutions of a problem, scores beside solutions. Each is read as it is meant or refused with the name of the column,
and the reading that is meant is among those that the refusal shows."""

import csv
import io
import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from stepsight.core.errors import UserError
from stepsight.core.text.split import split_steps
from stepsight.storage.importers.label_guesses import doubtful
from stepsight.storage.importers.recognition import BEGINNING, Holds, kind_of, recognise
from stepsight.training.experiments.filtering.pool import import_pool
from stepsight.training.experiments.reranking.reranking import import_candidates
from tests.fuzz.attack import COUNT
from tests.seeds import chance

Row = dict[str, Any]
Make = Callable[[random.Random], Any]
PROBLEMS = ("problem", "question", "prompt", "query", "input", "Question", "doc.question")
SINGLE = ("solution", "answer", "output", "response", "completion", "reasoning", "Solution", "doc.solution")
REFERENCES = ("solution", "answer", "output", "doc.answer", "response", "completion", "reasoning", "process")
RESPONSES = (
    "responses", "generations", "completions", "outputs", "resps", "code", "samples", "model_output", "candidates",
    "response", "output", "completion", "prediction", "modelResponse", "model output", "llm_output", "generation",
    "run.responses", "run.output", "choices",
)  # fmt: skip
MARKS = ("label", "labels", "rating", "ratings", "Label", "meta.label", "step_labels")
FIRST_ERRORS = (
    "first_error", "first_error_step", "error_index", "first_wrong_step", "firstErrorStep", "error_step",
    "First error", "first_incorrect_step", "mistake_index", "gold.error_position", "model_first_error_step_index",
)  # fmt: skip
OTHERS: dict[str, Make] = {
    "source": lambda rng: rng.choice(["MATH", "gsm8k", None]),
    "level": lambda rng: rng.randint(1, 5),
    "subject": lambda rng: "Algebra",
    "is_correct": lambda rng: rng.random() < 0.5,
    "tags": lambda rng: ["sum", "digits"],
    "score": lambda rng: rng.random(),
    "final_answer": lambda rng: str(rng.randint(1, 50)),
    "ground_truth": lambda rng: "We add both.\nIt is 7.\nSo 7.",
    "n_steps": lambda rng: rng.randint(1, 9),
    "config": lambda rng: {"seed": 3, "model": "m"},
}
ENDS = ("The answer is {}.", "#### {}", "So \\boxed{{{}}}.", "It is {}.", "Hence {}")


def sums(rng, steps):
    """The steps of a solution, the last of which has an answer."""
    lines = [f"{rng.randint(2, 90)} + {rng.randint(2, 90)} = {rng.randint(4, 180)}." for _ in range(steps - 1)]
    return [*lines, rng.choice(ENDS).format(rng.randint(4, 180))]


def solution(rng, least=1):
    return rng.choice(["\n", "\n\n"]).join(sums(rng, rng.randint(least, 6)))


def a_problem(rng):
    return f"Add {rng.random()}."


def steps_of(least):
    return lambda rng: sums(rng, rng.randint(least, 6))


def solution_of(least):
    return lambda rng: solution(rng, least)


def several(count, least=1):
    return lambda rng: [solution(rng, least) for _ in range(count)]


def one_of(values):
    return lambda rng: rng.choice(values)


def shares(count):
    return lambda rng: [rng.random() for _ in range(count)]


def verdicts(count):
    return lambda rng: [rng.random() < 0.5 for _ in range(count)]


def put(row, name, value):
    """Set a column, whose name may be that of a key within."""
    first, _, within = name.partition(".")
    if within:
        row.setdefault(first, {})[within] = value
    else:
        row[first] = value


def table(rng, columns):
    """Up to 30 rows with the columns and with some others, in any order."""
    made = columns | {name: OTHERS[name] for name in rng.sample(list(OTHERS), rng.randint(0, 4))}
    names = list(made)
    rng.shuffle(names)
    rows = []
    for _ in range(rng.choice([1, 2, 3, 12, 30])):
        row: Row = {}
        for name in names:
            put(row, name, made[name](rng))
        rows.append(row)
    return rows


def written(rows, rng):
    """The name and content of a file, as JSON Lines, an array or CSV."""
    is_flat = not any(isinstance(value, dict) for row in rows for value in row.values())
    way = rng.choice(["lines", "array", "csv"] if is_flat else ["lines", "array"])
    if way == "csv":
        buffer = io.StringIO(newline="")
        writer = csv.DictWriter(buffer, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
        return "t.csv", buffer.getvalue().encode()
    if way == "array":
        return "t.json", json.dumps(rows, indent=rng.choice([None, 1])).encode()
    return "t.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def look(rows, rng):
    """What a file of the rows is recognised as, and a function that reads it with some fields chosen."""
    name, content = written(rows, rng)
    lines = content.splitlines(keepends=True)
    found = recognise(content[:BEGINNING], lines, name)

    def read(chosen: dict[str, str]) -> list[Any]:
        assert found.columns is not None
        kind = kind_of(found.kind, replace(found.columns, **chosen), content[:BEGINNING])
        return [kind.parse(row, where) for where, row in kind.rows(lines, name)]

    return found, read


def doubt_of(found, about, *names):
    """The doubt about a field, which the message that the command prints names with its columns."""
    assert (found.holds, found.kind) == (Holds.TRACES, "columns")
    assert found.columns is not None
    doubt = next(one for one in found.doubts if one.about == about)
    message = str(doubtful(found.doubts, found.columns, "t"))
    assert all(repr(name) in message for name in names), (names, message)
    assert all(value in message for one in doubt.readings for value in one.fields.values())
    return doubt


def golds(traces):
    return [[step.gold for step in trace.steps] for trace in traces]


def texts(traces):
    return [[step.text for step in trace.steps] for trace in traces]


def plain_steps(text):
    return [step if isinstance(step, str) else "\n".join(step) for step in split_steps(text)]


def test_a_mark_of_a_whole_solution_is_no_first_error():
    read_at_once = 0
    for number in range(COUNT):
        rng = chance(f"mark:{number}")
        marks = rng.choice([(0, 1), (-1, 1), (1, 2, 3, 4, 5), (True, False), (0.0, 1.0), ("1", "0"), (0.25, 0.5),
                            ("correct", "wrong"), (-1, 0, 1), ("A", "B"), (0, 1, None), (1,)])  # fmt: skip
        name, (problem, steps) = rng.choice(MARKS), (rng.choice(PROBLEMS), rng.choice([*SINGLE, "steps"]))
        make = steps_of(1) if steps == "steps" else solution_of(2)
        columns = {problem: a_problem, steps: make, name: one_of(marks)}
        rows = table(rng, columns)
        found, read = look(rows, rng)
        assert found.kind == "columns", (number, rows[0])
        if found.doubts:
            doubt = doubt_of(found, "labels", name)
            chosen = next(one.fields for one in doubt.readings if not one.fields["labels"])
            assert len(doubt.readings) == 3
        else:
            read_at_once, chosen = read_at_once + 1, {}
        traces = read(dict(chosen))
        assert {gold for gold in golds(traces) for gold in gold} == {None}, (number, rows[0], found)
    assert 0 < read_at_once < COUNT


def shaped(way, count):
    """Responses as a program writes them: one, a list, a list within a list, or objects."""
    if way == 0:
        return solution_of(1)
    return lambda rng: [made := several(count)(rng), [made], [{"text": one, "tokens": 3} for one in made]][way - 1]


def first_of(value):
    while not isinstance(value, str):
        value = value["text"] if isinstance(value, dict) else value[0]
    return value


def test_a_reference_is_not_judged_instead_of_the_responses():
    for number in range(COUNT):
        rng = chance(f"reference:{number}")
        reference, way = rng.choice(REFERENCES), rng.random()
        responses = rng.choice([one for one in RESPONSES if one.lower() != reference])
        count = rng.randint(1, 4)
        columns = {
            rng.choice(PROBLEMS[:2]): a_problem,
            reference: solution_of(2 if "answer" in reference else 1),
            responses: shaped(rng.randrange(4), count),
        }
        if way < 0.3:
            columns["scores"] = shares(count)
        if way > 0.8:
            columns["label"] = one_of([0, 1])
        rows = table(rng, columns)
        found, read = look(rows, rng)
        doubt = doubt_of(found, "steps", reference)
        assert responses in doubt.message, (number, doubt)
        meant = [value if (value := row.get(responses)) is not None else _within(row, responses) for row in rows]
        expected = [plain_steps(first_of(one)) for one in meant]
        readings = [_try(read, one.fields) for one in doubt.readings]
        assert expected in readings, (number, rows[0], doubt)


def _within(row, name):
    first, _, within = name.partition(".")
    return row[first][within]


def _try(read, fields):
    try:
        return texts(read(dict(fields)))
    except UserError as error:
        return str(error)


def test_several_solutions_are_not_the_steps_of_one():
    for number in range(COUNT):
        rng = chance(f"several:{number}")
        count, has_labels, problem = rng.randint(1, 5), rng.random() < 0.4, rng.choice(PROBLEMS)
        name = rng.choice(["completions", "responses", "output", "solution", "samples", "answers"])
        if rng.random() < 0.3:
            problem, name, has_labels = "prompt", "completions", True
        # Under the names of stepwise supervision, solutions of one step are its steps.
        is_stepwise = (problem, name) == ("prompt", "completions") and has_labels
        columns = {problem: a_problem, name: several(count, 2 if is_stepwise or name == "answers" else 1)}
        if has_labels:
            columns["labels"] = verdicts(count)
        rows = table(rng, columns)
        found, read = look(rows, rng)
        doubt = doubt_of(found, "steps", name)
        expected = [plain_steps(row[name][0]) for row in rows]
        (chosen,) = [one.fields for one in doubt.readings if one.fields["steps"] == f"{name}.0"]
        traces = read(dict(chosen))
        assert texts(traces) == expected, (number, rows[0])
        assert not any(trace.has_gold for trace in traces)


def test_a_first_error_is_counted_as_it_is_meant():
    read_at_once = 0
    for number in range(COUNT):
        rng = chance(f"error:{number}")
        name, start = rng.choice(FIRST_ERRORS), rng.choice([0, 1])
        write = rng.choice([int, float, str])
        truth: list[int] = []

        rows = table(rng, {"problem": a_problem, "steps": steps_of(1)})
        for row in rows:
            truth.append(rng.randint(-1, len(row["steps"]) - 1))
            put(row, name, write(truth[-1] + start))
        expected = [
            [
                "valid" if error in (-1, *range(place + 1, 9)) else "neg" if place == error else None
                for place in range(len(row["steps"]))
            ]
            for row, error in zip(rows, truth, strict=True)
        ]
        found, read = look(rows, rng)
        if found.doubts:
            doubt = doubt_of(found, "labels", name)
            (chosen,) = [one.fields for one in doubt.readings if one.fields["labels_as"] == f"error-from-{start}"]
        else:
            chosen, read_at_once = {}, read_at_once + 1
            assert any(repr(name) in note for note in found.notes)
        assert golds(read(dict(chosen))) == expected, (number, rows[0], found)
    assert read_at_once > COUNT / 3


def test_labels_of_steps_are_read_as_they_are_meant():
    for number in range(COUNT):
        rng = chance(f"labels:{number}")
        scheme = rng.choice(["right", "rated", "words", "signs", "floats"])
        name = rng.choice(MARKS)
        values = {
            "right": {1: "valid", 0: "neg"}, "rated": {1: "pos", 0: "neu", -1: "neg"},
            "words": {"pos": "pos", "neu": "neu", "neg": "neg"}, "signs": {"+": "valid", "-": "neg"},
            "floats": {1.0: "valid", 0.0: "neg"},
        }[scheme]  # fmt: skip
        rows = table(rng, {"problem": a_problem, "steps": steps_of(2)})
        drawn = [[rng.choice(list(values)) for _ in row["steps"]] for row in rows]
        if scheme == "rated":
            # Without a wrong step among the first rows nobody can tell.
            drawn[0][0] = -1
        for row, labels in zip(rows, drawn, strict=True):
            put(row, name, labels)
        found, read = look(rows, rng)
        chosen: dict[str, str] = {}
        if found.doubts:
            assert scheme in ("right", "floats")
            assert "rating" in name
            doubt = doubt_of(found, "labels", name)
            (chosen,) = [dict(one.fields) for one in doubt.readings if one.fields["labels_as"] == "validity"]
        expected = [[values[label] for label in labels] for labels in drawn]
        if scheme in ("right", "floats") and "rating" in name and not found.doubts:
            # All right.
            expected = [["pos" for _ in labels] for labels in drawn]
        assert golds(read(chosen)) == expected, (number, rows[0], found)


def test_candidates_and_pools_with_a_reference_are_refused(tmp_path, sqlite_store):
    for number in range(COUNT):
        rng = chance(f"pool:{number}")
        path, count = tmp_path / "rows.jsonl", rng.randint(1, 4)
        responses = rng.choice([one for one in RESPONSES if "." not in one and one not in ("solution",)])
        columns = {
            "problem": a_problem,
            "solution": solution_of(2),
            responses: shaped(rng.randrange(4), count),
        }
        rows = table(rng, columns)
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        for read in (import_candidates, lambda store, path: import_pool(store, [path])):
            with pytest.raises(UserError) as refusal:
                read(sqlite_store, path)
            assert responses in str(refusal.value), (number, str(refusal.value))
        path.write_text(
            "".join(f"{json.dumps({key: row[key] for key in row if key != responses})}\n" for row in rows)
        )
        assert import_candidates(sqlite_store, path, f"candidates {number}").traces == len(rows)
        assert import_pool(sqlite_store, [path], str(number)).traces == len(rows)
