"""Label Studio's format: a JSON array of tasks. A task is a trace with one annotation per annotator.

    [{"data": {"id": "7", "dataset": "mr-math-invalid", "problem": "…", "steps": [{"text": "…"}, {"text": "…"}],
               "annotators": ["ada"]},
      "annotations": [{"lead_time": 41.5, "created_at": "2026-03-01T09:30:00+00:00", "was_cancelled": false,
        "result": [{"id": "label-1", "type": "choices", "from_name": "label_1", "to_name": "step_1",
                    "value": {"choices": ["neg"]}}]}]}]

The indices in `from_name` and `to_name` are 0-based, as in Label Studio's repeaters. A step without a label has no
result. `annotators` names the annotator of each annotation, in order, because Label Studio only knows its own
users. The matching project configuration is:

    <View>
      <Text name="problem" value="$problem"/>
      <Repeater on="$steps" indexFlag="{{idx}}">
        <Text name="step_{{idx}}" value="$steps[{{idx}}].text"/>
        <Choices name="label_{{idx}}" toName="step_{{idx}}" choice="single" showInline="true">
          <Choice value="neg"/> <Choice value="neu"/> <Choice value="pos"/> <Choice value="unsure"/>
        </Choices>
      </Repeater>
    </View>

Tasks that are read may come from here, or merely have the same structure. Each annotation becomes the events by
which its annotator labels the steps and submits. Tasks name no traces that could be relied on, which are therefore
found by their text. Label Studio changes the text that it shows: line breaks, no-break spaces, accents, and white
space at its ends. Texts that look the same to a reader therefore count as the same.
"""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Any, TypeVar

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.text.signs import comparable
from stepsight.core.trace import Trace
from stepsight.storage.database.labelling_schema import CampaignRow, EventRow, GuidelineRow, ItemRow, SlotRow
from stepsight.storage.database.schema import DatasetRow, TraceRow, now
from stepsight.storage.database.stored_json import MOST_NUMBER
from stepsight.storage.importers.rows.fields import describe, field, text, whole
from stepsight.storage.importers.rows.kind import Row
from stepsight.storage.labelling.annotation import LABELS
from stepsight.storage.labelling.consensus import CONSENSUS, LabelledTrace
from stepsight.storage.labelling.files.import_events import PersonLookup
from stepsight.storage.labelling.plan import CampaignSettings, CampaignView, Ordering, read_settings
from stepsight.storage.labelling.record import FREE, SUBMITTED
from stepsight.storage.labelling.submissions import read_annotations
from stepsight.storage.people.users import User
from stepsight.storage.traces.queries import StoredTrace, load_traces, traces

_T = TypeVar("_T")

_QUESTION = "label"
_PLACE = re.compile(r"(\w+?)_(\d{1,6})")
_STEP = re.compile(r"step_(\d{1,6})")
# The types of results that can label a step, besides those of spans, such as paragraphlabels. Texts are notes.
_ANSWERS = ("choices", "rating", "number", "taxonomy", "pairwise")
_GUIDELINE = "The guideline stands in the store that these labels were exported from."


def tasks(versions: list[LabelledTrace], campaign: str) -> list[Row]:
    """Return a trace as a task, with an annotation for each of its versions."""
    trace = versions[0].trace
    data = {
        "id": trace.id,
        "dataset": trace.dataset,
        "problem": trace.problem,
        "steps": [{"text": step.text} for step in trace.steps],
        "annotators": [labelled.annotator or CONSENSUS for labelled in versions],
    }
    return [{"data": data, "annotations": list(map(_format_annotation, versions))}]


def _format_annotation(labelled: LabelledTrace) -> Row:
    # One annotator's choices are exported unchanged, since unsure is a choice too.
    labels = labelled.annotations[0].labels if labelled.how is None else labelled.labels
    return {
        "lead_time": labelled.seconds,
        "created_at": labelled.moment.isoformat(),
        "was_cancelled": False,
        "result": [
            {
                "id": f"label-{place}",
                "type": "choices",
                "from_name": f"label_{place}",
                "to_name": f"step_{place}",
                "value": {"choices": [label]},
            }
            for place, label in enumerate(labels)
            if label is not None
        ],
    }


@dataclass(frozen=True)
class TaskAnnotation:
    """What one person says about a task: a label, or None, for each step, when, and the seconds that it took."""

    annotator: str
    labels: tuple[str | None, ...]
    moment: datetime
    seconds: float


class LabelStudioImporter:
    """Adds the annotations in tasks to one campaign within a transaction.

    A task belongs to the trace in `dataset` with the same problem and steps. `annotations` counts the new
    annotations, and `repeated` those that the campaign already has. If the import creates the campaign, it is
    closed at the end, because nothing is left to label.
    """

    def __init__(self, session: Session, campaign: str, dataset: str, user: User) -> None:
        self._session, self.name, self._user = session, campaign, user
        self.annotations = self.repeated = 0
        self._persons = PersonLookup(session)
        self._dataset, self._index = dataset, TraceIndex(session, dataset)
        self._row = session.scalar(select(CampaignRow).where(CampaignRow.name == campaign))
        self._made = self._row is None
        self._most = 1

    def add(self, task: Row, annotator: str | None) -> None:
        """Add the annotations of a task, by `annotator` or, if it is None, by the people that the task names.

        Annotations that are cancelled or have no label are ignored, so that they can be imported once they have
        one. Raises `UserError` if the task matches no trace or several traces, if a choice is not a label, if no
        choice names a step, or if a person has already labelled the trace differently in the campaign.
        """
        data = _typed_field(task, "data", dict)
        texts = [_step_text(step, n) for n, step in enumerate(_typed_field(data, "steps", list), 1)]
        named = data.get("id") if data.get("dataset") == self._dataset else None
        trace = self._index.find(Trace.of(text(data, "problem"), texts), named)
        annotations = list(_annotations(task, data, len(texts), len(trace.steps), annotator))
        item = self._item(trace)
        of_item = select(SlotRow).where(SlotRow.item_id == item.id)
        slots = list(self._session.scalars(of_item.order_by(SlotRow.number)))
        stored = {
            earlier.user: TaskAnnotation(earlier.user, earlier.labels, earlier.moment, earlier.seconds)
            for earlier in read_annotations(self._session, item.campaign_id, item.id)
        }
        for annotation in annotations:
            if stored.get(annotation.annotator) == annotation:
                self.repeated += 1
            else:
                self._add(item, slots, annotation, trace.id)
                stored[annotation.annotator] = annotation

    def finish(self) -> None:
        """Complete a campaign that this import created, whose overlap is known only at the end."""
        if self._row is None or not self._made:
            return
        self._row.settings = self._row.settings | {"overlap": self._most}
        self._row.closed = now()
        self._session.add(
            GuidelineRow(campaign_id=self._row.id, version=1, text=_GUIDELINE, created_by=self._user.id)
        )

    def _item(self, trace: StoredTrace) -> ItemRow:
        if self._row is None:
            self._row = CampaignRow(
                name=self.name,
                dataset_id=trace.dataset_id,
                **CampaignSettings(ordering=Ordering.FILE).columns(),
                created_by=self._user.id,
            )
            self._session.add(self._row)
            self._session.flush()
        view = read_settings(CampaignSettings, self._row.settings).view
        if view is not CampaignView.WHOLE:
            raise UserError(
                f"the annotation was made in the view whole, but the campaign {self.name!r} has the view {view}.",
                "Import it as another campaign (--campaign).",
            )
        of_campaign = ItemRow.campaign_id == self._row.id
        item = self._session.scalar(select(ItemRow).where(of_campaign, ItemRow.trace_id == trace.trace_id))
        if item is None:
            last = self._session.scalar(select(func.max(ItemRow.place)).where(of_campaign))
            item = ItemRow(
                campaign_id=self._row.id,
                trace_id=trace.trace_id,
                place=0 if last is None else last + 1,
                chosen="ordered",
                digest=trace.digest,
                text_digest=trace.text_digest,
            )
            self._session.add(item)
            self._session.flush()
        return item

    def _add(self, item: ItemRow, slots: list[SlotRow], annotation: TaskAnnotation, trace_id: str) -> None:
        """Add the slot of an annotation, and its labels and submission as events with the time of the
        submission."""
        person = self._persons.id(annotation.annotator)
        if any(slot.user_id == person for slot in slots):
            raise UserError(
                f"{annotation.annotator!r} has other labels of this trace, or is labelling it, in the campaign"
                f" {self.name!r}.",
                "Import it as another campaign (--campaign).",
            )
        slot = next((slot for slot in slots if slot.state == FREE), None)
        if slot is None:
            number = slots[-1].number + 1 if slots else 0
            slot = SlotRow(campaign_id=item.campaign_id, item_id=item.id, number=number)
            self._session.add(slot)
            slots.append(slot)
        slot.state, slot.user_id = SUBMITTED, person
        slot.taken = slot.ended = annotation.moment
        self._session.flush()
        self._most = max(self._most, slot.number + 1)
        self.annotations += 1
        # The key includes campaign and trace, so that equal annotations of different traces get different keys.
        about = [self.name, self._dataset, trace_id, annotation.annotator, annotation.labels]
        key = hashlib.sha256(json.dumps([*about, annotation.moment.isoformat()]).encode()).hexdigest()[:32]
        labelled = [("label", step, label) for step, label in enumerate(annotation.labels) if label is not None]
        for number, (kind, step, new) in enumerate([*labelled, ("submit", None, None)]):
            event = EventRow(
                campaign_id=item.campaign_id,
                item_id=item.id,
                slot_id=slot.id,
                user_id=person,
                kind=kind,
                step=step,
                new=new,
                key=f"import-{key}-{number}",
                moment=annotation.moment,
                seconds=annotation.seconds if kind == "submit" else None,
                digest=item.digest,
                guideline=1,
                view=CampaignView.WHOLE.value,
                revealed=len(annotation.labels),
            )
            self._session.add(event)


def _annotations(
    task: Row, data: Mapping[str, Any], shown: int, steps: int, annotator: str | None
) -> Iterator[TaskAnnotation]:
    """Yield the annotations of a task that shows the first `shown` of the `steps` steps of its trace. Those that it
    does not show have no label."""
    names = data.get("annotators")
    for number, annotation in enumerate(_typed_field(task, "annotations", list)):
        if not isinstance(annotation, dict):
            raise UserError(f"annotation {number + 1} is {describe(annotation)}, expected an object.")
        if annotation.get("was_cancelled"):
            continue
        labels = _labels(annotation, shown)
        if not any(labels):
            continue
        named = names[number] if isinstance(names, list) and number < len(names) else None
        person = annotator or _annotator_name(annotation.get("completed_by")) or named
        if not isinstance(person, str) or not person:
            raise UserError("the annotator is not named.", "Name them (--annotator).")
        seconds = annotation.get("lead_time")
        if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 < seconds < MOST_NUMBER:
            seconds = 0.0
        value = annotation.get("created_at") or annotation.get("updated_at")
        try:
            moment = datetime.fromisoformat(str(value))
            moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError):
            raise UserError(f"the field 'created_at' is {describe(value)}, expected a date and time.") from None
        yield TaskAnnotation(person, (*labels, *[None] * (steps - shown)), moment, float(seconds))


def _annotator_name(value: object) -> str | None:
    """Return a name for a Label Studio annotator, who is given as a user id, an email address or a user record."""
    if isinstance(value, dict):
        value = value.get("email") or value.get("id")
    if isinstance(value, int) and not isinstance(value, bool):
        return f"label-studio-{value}"
    return value if isinstance(value, str) and value else None


def _labels(annotation: Mapping[str, Any], steps: int) -> list[str | None]:
    """Return the label of each step. The name of a control ends with the 0-based index of its step, as in
    `label_0`.

    Raises `UserError` if there are choices or ratings but none of them is a label, if a step has several labels, or
    if a choice that may be a label has a control that does not name the step.
    """
    # The choices for each step, by the name of the question.
    questions: defaultdict[str, defaultdict[int, list[Any]]] = defaultdict(lambda: defaultdict(list))
    unplaced = []
    for result in _typed_field(annotation, "result", list):
        kind = result.get("type") if isinstance(result, dict) else None
        match = _PLACE.fullmatch(str(result.get("from_name"))) if kind == "choices" else None
        if match is not None:
            place = whole(int(match[2]), 0, steps - 1, f"the place of {match[0]}", f"0 to {steps - 1}")
            target = _STEP.fullmatch(str(result.get("to_name")))
            if target is not None and int(target[1]) != place and _has_label(_choices(result)):
                raise UserError(
                    f"the choice {match[0]} is attached to {target[0]}.",
                    "Give a choice the place of its step, counted from 0, such as label_0 for step_0.",
                )
            questions[match[1]][place] += _choices(result)
        elif isinstance(kind, str) and (kind in _ANSWERS or kind.endswith("labels")):
            unplaced.append(result)
    answers = _answers(questions)
    for result in unplaced:
        if not _is_another_question(result, answers, is_sure=_QUESTION in questions):
            raise UserError(
                f"no choice says which step belongs to {describe(result.get('from_name'))} ({result['type']}).",
                "Name the choice of each step label_ and its place, counted from 0, such as label_0.",
            )
    labels: list[str | None] = [None] * steps
    for place, chosen in answers.items():
        if len(set(map(str, chosen))) != 1:
            raise UserError(f"step {place + 1} has {len(chosen)} labels.", "Give it one.")
        labels[place] = _key(chosen[0])
        if labels[place] not in LABELS:
            raise UserError(
                f"the label of step {place + 1} is {describe(chosen[0])}.", f"Expected {', '.join(LABELS)}."
            )
    return labels


def _answers(questions: Mapping[str, Mapping[int, list[Any]]]) -> Mapping[int, list[Any]]:
    """Return the answers to the question that asks for labels.

    The question called `label` is used. If there is none, it is the only question, or the only one with labels
    among its answers. Raises `UserError` if this leaves no or several questions.
    """
    if len(questions) <= 1 or _QUESTION in questions:
        return questions[_QUESTION] if _QUESTION in questions else next(iter(questions.values()), {})
    fitting = [answers for answers in questions.values() if any(map(_has_label, answers.values()))]
    if len(fitting) != 1:
        names = ", ".join(f"{name}_…" for name in questions)
        raise UserError(f"the steps have several questions: {names}.", "Name the one for labels label_0 and so on.")
    return fitting[0]


def _is_another_question(result: Row, answers: Mapping[int, list[Any]], *, is_sure: bool) -> bool:
    """True if a result whose control names no step cannot be a label. This is so if it is attached to a step that
    has a label, or to no step while at least one step has a label.

    Unless `answers` are certain to be the labels (`is_sure`), it must not look like a label either.
    """
    is_choice = result.get("type") == "choices"
    if not is_sure and ((is_choice and _has_label(_choices(result))) or _QUESTION in str(result.get("from_name"))):
        return False
    about = _PLACE.fullmatch(str(result.get("to_name")))
    return bool(answers) if about is None else int(about[2]) in answers


def _choices(result: Row) -> list[Any]:
    return _typed_field(_typed_field(result, "value", dict), "choices", list)


def _has_label(chosen: list[Any]) -> bool:
    return any(_key(choice) in LABELS for choice in chosen)


def _key(label: object) -> str:
    return comparable(label).strip().lower() if isinstance(label, str) else ""


def _step_text(step: object, number: int) -> str:
    value = step.get("text") if isinstance(step, dict) else step
    if not isinstance(value, str):
        raise UserError(f"step {number} is {describe(value)}, expected a text.")
    return value


def _typed_field(row: Mapping[str, Any], key: str, kind: type[_T]) -> _T:
    value = field(dict(row), key)
    if not isinstance(value, kind):
        expected = "an object" if kind is dict else "a list"
        raise UserError(f"the field {key!r} is {describe(value)}, expected {expected}.")
    return value


class TraceIndex:
    """Looks up a dataset's traces by problem and steps. Only digests of the problems are held in memory."""

    def __init__(self, session: Session, dataset: str) -> None:
        self._session, self._dataset = session, dataset
        self._ids: defaultdict[bytes, list[int]] = defaultdict(list)
        problems = select(TraceRow.id, TraceRow.problem).join(DatasetRow, DatasetRow.id == TraceRow.dataset_id)
        problems = problems.where(DatasetRow.name == dataset).order_by(TraceRow.position)
        for id, problem in session.execute(problems, execution_options={"yield_per": 1000}):
            self._ids[_digest(problem)].append(id)

    def find(self, labelled: Trace, id: object = None) -> StoredTrace:
        """Return the trace with this problem and these steps.

        If there are several, the first of these rules that singles out a trace is used: its id is `id`, its text is
        exactly the same, or it ends with the last labelled step. Raises `UserError` if no trace fits (the
        message names the first different step if a single trace has the problem), or if several traces still fit.
        """
        ids = self._ids.get(_digest(labelled.problem), [])
        same = load_traces(self._session, traces(ids).order_by(TraceRow.position))
        fitting = [trace for trace in same if _fits(labelled, trace, _words)]
        for prefers in (
            lambda trace: trace.id == str(id),
            lambda trace: trace.problem == labelled.problem and _fits(labelled, trace, str),
            lambda trace: len(trace.steps) == len(labelled.steps),
        ):
            preferred = list(filter(prefers, fitting)) if len(fitting) > 1 else []
            fitting = preferred or fitting
        if not fitting:
            raise self._no_match_error(labelled, same)
        if len(fitting) > 1:
            names = ", ".join(trace.id for trace in fitting[:3])
            raise UserError(f"the row fits {len(fitting)} traces of {self._dataset!r}: {names}.")
        return fitting[0]

    def _no_match_error(self, labelled: Trace, same: list[StoredTrace]) -> UserError:
        """Return the error for a row that fits no trace. `same` holds the traces with the same problem."""
        hint = "Import the traces first, or name another dataset (--dataset)."
        if len(same) != 1:
            return UserError(f"the dataset {self._dataset!r} has no trace with this problem and these steps.", hint)
        (trace,) = same
        name = f"trace {trace.id!r} of {self._dataset!r}"
        pairs = zip_longest(_texts(labelled), _texts(trace)[: len(labelled.steps)], fillvalue="")
        step, given, stored = next(
            (step, given, stored)
            for step, (given, stored) in enumerate(pairs, start=1)
            if _words(given) != _words(stored)
        )
        return UserError(f"step {step} is {given!r:.60}, but that of {name} is {stored!r:.60}.", hint)


def _fits(labelled: Trace, trace: Trace, form: Callable[[str], object]) -> bool:
    begins = _texts(trace)[: len(labelled.steps)]
    return list(map(form, begins)) == list(map(form, _texts(labelled)))


def _texts(trace: Trace) -> list[str]:
    return [step.text for step in trace.steps]


def _words(text: str) -> list[str]:
    return comparable(text).split()


def _digest(problem: str) -> bytes:
    words = " ".join(_words(problem))
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).digest()[:16]
