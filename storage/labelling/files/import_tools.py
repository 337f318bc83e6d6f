"""Importing Label Studio tasks and Argilla records as annotations of stored traces.

The files may have been written by `formats.label_studio` and `formats.argilla`, or merely have the same structure.
The annotator is given by the caller, or taken from `completed_by` (Label Studio), `user_id` (Argilla) or the names
in `annotators`.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.text.signs import comparable
from stepsight.core.trace import Trace
from stepsight.storage.importers.rows.fields import describe, field, located, text, whole
from stepsight.storage.importers.rows.kind import Row, is_json_min
from stepsight.storage.labelling.annotation import LABELS
from stepsight.storage.labelling.files.formats.argilla import QUESTION, user_id
from stepsight.storage.labelling.files.rows import ImportedTrace
from stepsight.storage.labelling.files.trace_index import TraceIndex
from stepsight.storage.traces.queries import StoredTrace

_PLACE = re.compile(r"(\w+?)_(\d{1,6})")
_STEP = re.compile(r"step_(\d{1,6})")
_NUMBER = re.compile(r"\d{1,6}")
# The fields of an annotation in JSON-MIN, and their names in a task.
_OF_ANNOTATION = {name: name for name in ("created_at", "updated_at", "lead_time")} | {"annotator": "completed_by"}
_TEXTS = ("problem", "steps")
# The types of results that can say what a step is, beside those of spans, such as paragraphlabels. Texts are
# notes.
_ANSWERS = ("choices", "rating", "number", "taxonomy", "pairwise")
# Argilla's files have no times.
NO_MOMENT = datetime.fromtimestamp(0, UTC).isoformat()
_MOST_STEPS = 100_000
# The choices for each step, by its 0-based index.
_Answers = dict[int, list[Any]]


def read_label_studio(
    session: Session, rows: Iterator[tuple[str, Row]], dataset: str, annotator: str | None
) -> Iterator[tuple[str, ImportedTrace]]:
    """Yield the annotations in each task, assigned to the trace in `dataset` with the same problem and steps.

    The rows are tasks, or those of JSON-MIN, in which the choices are columns beside the task's data. Annotations
    that are cancelled or have no label are ignored, so that they can be imported once they have one. Raises
    `UserError` if a task matches no trace or several traces, or if a choice is not a label, or if no choice names a
    step.
    """
    index = TraceIndex(session, dataset)
    for where, row in _tasks(rows):
        with located(where):
            data = _object(row, "data")
            texts = [_step_text(step, n) for n, step in enumerate(_list(data, "steps"), 1)]
            named = data.get("id") if data.get("dataset") == dataset else None
            trace = index.find(Trace.of(text(data, "problem"), texts), named)
            names = data.get("annotators")
            answers = []
            for number, one in enumerate(_list(row, "annotations")):
                if not isinstance(one, dict):
                    raise UserError(f"annotation {number + 1} is {describe(one)}, expected an object.")
                if one.get("was_cancelled"):
                    continue
                person = names[number] if isinstance(names, list) and number < len(names) else None
                who = annotator or _completed_by(one.get("completed_by")) or person
                labels = _choices(one, len(texts))
                if not any(labels):
                    continue
                moment, seconds = one.get("created_at") or one.get("updated_at"), one.get("lead_time")
                answers.append(answer_of(who, labels, _moment(moment), seconds))
            yield where, imported_trace(dataset, trace, answers)


def _tasks(rows: Iterator[tuple[str, Row]]) -> Iterator[tuple[str, Row]]:
    """Yield rows of JSON-MIN as tasks, each with one annotation. Tasks are yielded unchanged.

    In JSON-MIN, a text in a column such as `kind_0` may be a choice or a note. It counts as a choice if some row
    has a label in a column of that name. Raises `UserError` if no column holds the label of a step, or if the
    columns of the texts are missing.
    """
    first = next(rows)
    if not is_json_min(first[1]):
        yield first
        yield from rows
        return
    every = [first, *rows]
    matches = ((_PLACE.fullmatch(name), value) for _, row in every for name, value in row.items())
    questions = {
        match[1] for match, value in matches if match and (match[1] == QUESTION or _has_label(_strings(value)))
    }
    for where, row in every:
        results = [one for name, value in row.items() for one in _results(name, value, questions)]
        missing = next((key for key in _TEXTS if key not in row), "" if questions or results else f"{QUESTION}_0")
        if missing:
            raise UserError(
                f"{where}: the column {missing!r} is missing in a row of Label Studio's JSON-MIN (found:"
                f" {', '.join(map(repr, row)):.200}).",
                "Name the texts problem and steps, and the choice of each step as label_0, label_1 and so on.",
            )
        about = {name: row.get(theirs) for theirs, name in _OF_ANNOTATION.items()}
        # The id is Label Studio's own number of the task.
        data = {name: value for name, value in row.items() if name != "id"}
        yield where, {"data": data, "annotations": [about | {"result": results}]}


def _results(name: str, value: object, questions: Collection[str]) -> Iterator[Row]:
    """Yield a column of JSON-MIN as results of an annotation. A text, or a list of texts, is a choice if it answers
    one of `questions`, or if it is a label in a column whose name does not end with a step."""
    match, number = _PLACE.fullmatch(name), _NUMBER.search(name)
    about = {"from_name": name} | ({"to_name": f"step_{number[0]}"} if number else {})
    if name not in _TEXTS and (chosen := _strings(value)):
        if match[1] in questions if match else _has_label(chosen):
            yield about | {"type": "choices", "value": {"choices": chosen}}
        return
    for one in value if isinstance(value, list) else [value]:
        type = next(filter(_is_answer, one), None) if isinstance(one, dict) else None
        if type is not None:
            yield about | {"type": type, "value": one}


def _strings(value: object) -> list[str]:
    """Return a text, or a list of texts, as a list. The result is empty for anything else."""
    every = value if isinstance(value, list) else [value]
    found = [one for one in every if isinstance(one, str)]
    return found if len(found) == len(every) else []


def read_argilla(
    session: Session, rows: Iterator[tuple[str, Row]], dataset: str, annotator: str | None
) -> Iterator[tuple[str, ImportedTrace]]:
    """Yield the annotations in the records, assigned to the trace in `dataset` with the same problem and steps.

    Each record holds the responses to the question `label` for one step. The records of a trace need not be
    adjacent. Raises `UserError` if the steps match no trace or several traces, if a step is missing, or if a
    response is not a label.
    """
    index = TraceIndex(session, dataset)
    places: dict[str, str] = {}
    steps: dict[str, dict[int, Row]] = {}
    for where, row in rows:
        with located(where):
            about = _object(row, "metadata")
            name = str(field(about, "trace"))
            place = whole(field(about, "step"), 1, _MOST_STEPS, "the field 'step'", "a step, counted from 1")
            if place in steps.setdefault(name, {}):
                raise UserError(f"step {place} of the trace {name!r:.60} is there twice.", "Keep one record of it.")
            steps[name][place] = row
            places.setdefault(name, where)
    for name, records in steps.items():
        with located(places[name]):
            about = _object(next(iter(records.values())), "metadata")
            last = whole(
                about.get("steps", max(records)), 1, _MOST_STEPS, "the field 'steps'", "how many there are"
            )
            missing = next((n for n in range(1, last + 1) if n not in records), None)
            if missing is not None:
                hint = "Export all records of it."
                raise UserError(f"step {missing} of the trace {name!r:.60} is missing.", hint)
            in_order = [records[n] for n in range(1, last + 1)]
            texts = [text(_object(row, "fields"), "step") for row in in_order]
            named = name if about.get("dataset") == dataset else None
            trace = index.find(Trace.of(text(_object(in_order[0], "fields"), "problem"), texts), named)
            yield places[name], imported_trace(dataset, trace, _responses(in_order, annotator))


def _responses(records: list[Row], annotator: str | None) -> list[dict[str, Any]]:
    """Collect each annotator's responses over all steps. `records` has one record per step."""
    said: dict[str, list[str | None]] = {}
    for place, row in enumerate(records):
        names = _object(row, "metadata").get("annotators")
        known = {user_id(name): name for name in names if isinstance(name, str)} if isinstance(names, list) else {}
        responses = _object(row, "responses")
        if responses and QUESTION not in responses:
            raise UserError(
                f"no response to the question {QUESTION!r} (found: {', '.join(map(repr, responses)):.200}).",
                f"Name the question for labels {QUESTION}.",
            )
        for one in _list(responses, QUESTION) if QUESTION in responses else []:
            if not isinstance(one, dict):
                raise UserError(f"a response is {describe(one)}, expected an object.")
            id = str(one.get("user_id"))
            who = annotator or known.get(id, id)
            labels = said.setdefault(who, [None] * len(records))
            if labels[place] is not None:
                raise UserError(
                    f"step {place + 1} has two answers by {who!r:.60}.",
                    "Name no annotator of the whole file (--annotator).",
                )
            labels[place] = _label(one.get("value"), place + 1)
    return [answer_of(who, labels, NO_MOMENT, None) for who, labels in said.items()]


def imported_trace(dataset: str, trace: StoredTrace, answers: list[dict[str, Any]]) -> ImportedTrace:
    nothing = [None] * len(trace.steps)
    for one in answers:
        # Labels that end before the trace does leave its later steps unlabelled.
        one["labels"] = one["first"] = (one["labels"] + nothing)[: len(nothing)]
        one |= {"errors": nothing, "comments": nothing, "corrections": nothing}
    return ImportedTrace.of(dataset, trace, answers)


def answer_of(who: object, labels: list[str | None], submitted: str, seconds: object) -> dict[str, Any]:
    if not who:
        raise UserError("the annotator is not named.", "Name them (--annotator).")
    is_time = isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds > 0
    return {
        "annotator": who,
        "view": "whole",
        "labels": labels,
        "flag": None,
        "exposed": [],
        "labelled_before": False,
        "guideline": 1,
        "submitted": submitted,
        "seconds": seconds if is_time else 0.0,
    }


def _choices(annotation: Mapping[str, Any], steps: int) -> list[str | None]:
    """Return the label of each step. The name of a control ends with the 0-based index of its step, as in
    `label_0`.

    Raises `UserError` if there are choices or ratings but none of them is a label, if a step has several labels, or
    if a choice that may be a label has a control that does not name the step.
    """
    results = [one for one in _list(annotation, "result") if isinstance(one, dict)]
    questions: dict[str, _Answers] = {}
    unnamed = []
    for one in results:
        match = _PLACE.fullmatch(str(one.get("from_name"))) if one.get("type") == "choices" else None
        if match is not None:
            place = whole(int(match[2]), 0, steps - 1, f"the place of {match[0]}", f"0 to {steps - 1}")
            target = _STEP.fullmatch(str(one.get("to_name")))
            if target is not None and int(target[1]) != place and _has_label(_chosen(one)):
                raise UserError(
                    f"the choice {match[0]} is attached to {target[0]}.",
                    "Give a choice the place of its step, counted from 0, such as label_0 for step_0.",
                )
            questions.setdefault(match[1], {}).setdefault(place, []).extend(_chosen(one))
        elif _is_answer(one.get("type")):
            unnamed.append(one)
    answers = _labels_among(questions)
    for one in unnamed:
        if not _is_another_question(one, answers, is_sure=QUESTION in questions):
            raise UserError(
                f"no choice names the step of {describe(one.get('from_name'))} ({one['type']}).",
                "Name the choice of each step label_ and its place, counted from 0, such as label_0.",
            )
    labels: list[str | None] = [None] * steps
    for place, chosen in answers.items():
        if len(set(map(str, chosen))) != 1:
            raise UserError(f"step {place + 1} has {len(chosen)} labels.", "Give it one.")
        labels[place] = _label(chosen[0], place + 1)
    return labels


def _is_answer(type: object) -> bool:
    return isinstance(type, str) and (type in _ANSWERS or type.endswith("labels"))


def _chosen(result: Row) -> list[Any]:
    return _list(_object(result, "value"), "choices")


def _labels_among(questions: Mapping[str, _Answers]) -> _Answers:
    """Return the answers to the question that asks for labels.

    `questions` maps the name of each question to its answers. The question called `label` is used. If there is
    none, it is the only question, or the only one with labels among its answers. Raises `UserError` if this leaves
    no or several questions.
    """
    if len(questions) <= 1 or QUESTION in questions:
        return questions.get(QUESTION) or next(iter(questions.values()), {})
    fitting = [name for name, answers in questions.items() if any(map(_has_label, answers.values()))]
    if len(fitting) != 1:
        names = ", ".join(f"{name}_…" for name in questions)
        raise UserError(f"the steps have several questions: {names}.", "Name the one for labels label_0 and so on.")
    return questions[fitting[0]]


def _has_label(chosen: list[Any]) -> bool:
    return any(isinstance(one, str) and _key(one) in LABELS for one in chosen)


def _is_another_question(result: Row, answers: _Answers, *, is_sure: bool) -> bool:
    """True if a result whose control names no step cannot be a label. This is so if it is attached to a step that
    has a label, or to no step while at least one step has a label.

    Unless `answers` are certain to be the labels (`is_sure`), it must not look like a label either.
    """
    is_choice = result.get("type") == "choices"
    if not is_sure and ((is_choice and _has_label(_chosen(result))) or QUESTION in str(result.get("from_name"))):
        return False
    about = _PLACE.fullmatch(str(result.get("to_name")))
    return bool(answers) if about is None else int(about[2]) in answers


def _label(value: object, step: int) -> str:
    label = _key(value) if isinstance(value, str) else value
    if label not in LABELS:
        raise UserError(f"the label of step {step} is {describe(value)}.", f"Expected {', '.join(LABELS)}.")
    return str(label)


def _key(label: str) -> str:
    return comparable(label).strip().lower()


def _completed_by(value: object) -> str | None:
    """Return a name for a Label Studio annotator, who is given as a user id, an email address or a user record."""
    if isinstance(value, dict):
        value = value.get("email") or value.get("id")
    if isinstance(value, int) and not isinstance(value, bool):
        return f"label-studio-{value}"
    return value if isinstance(value, str) and value else None


def _moment(value: object) -> str:
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        raise UserError(f"the field 'created_at' is {describe(value)}, expected a date and time.") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()


def _step_text(step: object, number: int) -> str:
    value = step.get("text") if isinstance(step, dict) else step
    if not isinstance(value, str):
        raise UserError(f"step {number} is {describe(value)}, expected a text.")
    return value


def _object(row: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = field(dict(row), key)
    if not isinstance(value, dict):
        raise UserError(f"the field {key!r} is {describe(value)}, expected an object.")
    return value


def _list(row: Mapping[str, Any], key: str) -> list[Any]:
    value = field(dict(row), key)
    if not isinstance(value, list):
        raise UserError(f"the field {key!r} is {describe(value)}, expected a list.")
    return value
