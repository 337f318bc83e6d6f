"""Exports of Label Studio as its users make them, whose labels are known: controls under many names,
second questions, texts that a tool changed. Each is read as it is meant, or refused and nothing of it is stored."""

import json
import random
from typing import Any

import pytest

from stepsight.core.errors import UserError
from stepsight.core.trace import Trace
from stepsight.storage.labelling.campaigns import find_campaign, list_campaigns
from stepsight.storage.labelling.files.import_labels import import_labels
from stepsight.storage.labelling.submissions import iterate_annotations
from stepsight.storage.people.users import local_user
from tests.fuzz.attack import COUNT
from tests.fuzz.mutations import retyped
from tests.seeds import chance
from tests.storage.samples import add

DATASET = "sums"
TRACES = (
    Trace.of("Café: what is 2\xa0+ 3?", ["Let x = 2.\n\nThen x + 3 = 5. ", "So 5."], id="spaces"),
    Trace.of("Anna’s naïve “sum”: 7 − 4?", ["It's 7 - 4 = 3.", ["Check:", "3 + 4 = 7."], "é: 3"], id="signs"),
    Trace.of("Two that look alike", ["a\xa0b", "c"], id="first"),
    Trace.of("Two that look alike", ["a b", "c"], id="second"),
    Trace.of("One step?", ["\tx  =  1 "], id="one"),
)
# How the control of a step is called, from the place of the step; the labels of others name no step.
NAMED = ("label_{}", "label_{}", "mark_{}", "step_label_{}", "Urteil_{}")
UNNAMED = ("label-{}", "label{}", "{}_label", "label[{}]", "step_{}_label", "label", "label_{}_a", "label.{}")
LABELS = ("neg", "neu", "pos", "unsure")
MOMENTS = ("2024-03-06T09:30:00.123456Z", "2024-03-06T09:30:00+05:30", "2024-03-06T09:30:00", "2024-03-06 09:30:00")
PEOPLE = ((7, "label-studio-7"), ("a@x.org", "a@x.org"), ({"id": 7, "email": "b@x.org"}, "b@x.org"))

Row = dict[str, Any]
Labels = dict[str, list[tuple[str | None, ...]]]


def text_of(step):
    return "\n".join(step.substeps)


def shown(text, rng):
    """A text after a tool had it: it looks the same."""
    text = retyped(text, rng)
    if rng.random() < 0.3:
        text = text.strip()
    if rng.random() < 0.3:
        text = text.replace("\n", rng.choice(["\r\n", "\r"]))
    return text


def choice(name, place, value, kind="choices"):
    return {"id": f"r{place}", "type": kind, "from_name": name, "to_name": f"step_{place}", "value": value}


class Task:
    """A task of Label Studio with its one annotation, and the labels that it says; None if it has to be refused."""

    def __init__(self, trace: Trace, rng: random.Random) -> None:
        self.trace, self._rng = trace, rng
        self.labels = [rng.choice((*LABELS, *LABELS, None)) for _ in trace.steps]
        if not any(self.labels):
            self.labels[0] = "pos"
        self.name, self.fault, self.has_rival = rng.choice(NAMED), "", False
        self.results = [
            choice(self.name.format(place), place, {"choices": [self._written(label)]})
            for place, label in enumerate(self.labels)
            if label is not None
        ]
        self._ask_more()
        if rng.random() < 0.3:
            self._break()
        rng.shuffle(self.results)

    def _written(self, label: str) -> str:
        return self._rng.choice([label, label, label.upper(), label.title(), f" {label}\n", f"{label}\xa0"])

    def _ask_more(self) -> None:
        """Other questions: a note, the kind of an error, and one that could be the labels too."""
        rng, steps = self._rng, range(len(self.labels))
        if rng.random() < 0.3:
            self.results.append(choice("note", 0, {"text": ["odd"]}, "textarea"))
        if rng.random() < 0.3:
            self.results += [choice(f"error_{n}", n, {"choices": [rng.choice(["slip", "logic"])]}) for n in steps]
        elif rng.random() < 0.2:
            self.results += [choice(f"later_{n}", n, {"choices": [rng.choice(LABELS[:3])]}) for n in steps]
            # Which of two questions with labels is meant, only the name label tells.
            self.has_rival = self.name != "label_{}"
            self.fault = "two questions" if self.has_rival else ""

    def _break(self) -> None:
        """One thing with which no label is certain."""
        rng, one = self._rng, self._rng.choice([r for r in self.results if "choices" in r["value"]])
        mine = [r for r in self.results if r["from_name"].startswith(self.name.partition("{")[0])]
        way = rng.randrange(5)
        if way == 0:
            name = rng.choice(UNNAMED)
            for r in mine:
                r["from_name"] = name.format(r["to_name"].removeprefix("step_"))
            self.fault = name
        elif way == 1 and not self.has_rival:
            for r in mine:
                r |= {"type": "rating", "value": {"rating": rng.randint(1, 5)}}
            self.fault = "ratings"
        elif way == 2 and not self.has_rival:
            one = rng.choice(mine)
            one["value"] = {"choices": rng.choice([["pos", "neg"], ["wrong"], [], "pos", [1], None])}
            self.fault = "no label"
        elif way == 3:
            one["from_name"] = f"{one['from_name'].rpartition('_')[0]}_{len(self.labels)}"
            self.fault = "no such step"
        elif way == 4 and self.name == "label_{}":
            others = set(LABELS) - {mine[0]["value"]["choices"][0].strip().lower()}
            self.results.append(mine[0] | {"value": {"choices": [rng.choice(sorted(others))]}})
            self.fault = "two labels"

    def row(self, who: Any, moment: str) -> Row:
        """The task in the file."""
        rng, trace = self._rng, self.trace
        is_same = rng.random() < 0.3
        texts = [one if is_same else shown(one, rng) for one in [trace.problem, *map(text_of, trace.steps)]]
        steps = [text if rng.random() < 0.2 else {"text": text} for text in texts[1:]]
        data: Row = {"problem": texts[0], "steps": steps}
        if trace.problem == TRACES[2].problem or rng.random() < 0.5:
            data |= {"id": trace.id, "dataset": DATASET}
        annotation = {
            "id": 3, "completed_by": who, "result": self.results, "was_cancelled": False, "ground_truth": False,
            "lead_time": rng.choice([12.5, 0, None]), "created_at": moment, "updated_at": moment,
        }  # fmt: skip
        others = [annotation | {"was_cancelled": True, "result": []}] if rng.random() < 0.2 else []
        return {"id": 7, "data": data, "annotations": [annotation, *others], "predictions": [286], "project": 1}


def write(path, rows, rng):
    """The rows as one array or a line each, in one of the ways to write text."""
    escaped = {"ensure_ascii": rng.random() < 0.5}
    if rng.random() < 0.7:
        text = json.dumps(rows, indent=rng.choice([None, 2]), **escaped)
    else:
        text = "".join(json.dumps(row, **escaped) + rng.choice(["\n", "\r\n"]) for row in rows)
    path.write_bytes(text.encode(rng.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16"])))
    return path


def outcome(store, path, name):
    """The labels of each annotator after an import; None if it was refused."""
    try:
        import_labels(store, path, local_user(store), campaign=name, dataset=DATASET)
    except UserError:
        if name not in [one.name for one in list_campaigns(store)]:
            return None
    found: Labels = {}
    for one in iterate_annotations(store, find_campaign(store, name).id):
        found.setdefault(f"{one.user} {one.item.external_id}", []).append(tuple(one.labels))
    return found


@pytest.fixture
def store(sqlite_store):
    add(sqlite_store, TRACES, DATASET)
    return sqlite_store


def test_tasks_of_label_studio(store, tmp_path):
    refused = 0
    for number in range(COUNT):
        rng = chance(f"tasks:{number}")
        who, name = rng.choice(PEOPLE)
        tasks = [Task(trace, rng) for trace in rng.sample(TRACES, rng.randint(1, 3))]
        path = write(tmp_path / "tasks.json", [task.row(who, rng.choice(MOMENTS)) for task in tasks], rng)
        found = outcome(store, path, f"c{number}")
        expected = {f"{name} {task.trace.id}": [tuple(task.labels)] for task in tasks}
        faults = [task.fault for task in tasks if task.fault]
        refused += bool(faults)
        assert found == (None if faults else expected), (number, faults, expected, found)
    assert 0 < refused < COUNT
