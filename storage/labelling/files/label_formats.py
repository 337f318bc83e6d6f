"""The formats for exporting labels, and the writer of their files.

A format turns the versions of a trace into rows: the trace with the consensus, or with the labels of each
annotator. To add a format, add its function and a line to `FORMATS`. Label Studio's is in `label_studio`, beside
its reader.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from stepsight.core.errors import UserError, counted
from stepsight.core.files.whole_files import atomic_file
from stepsight.storage.database.store import Store
from stepsight.storage.exports.table_files import table_parts
from stepsight.storage.importers import stepwise
from stepsight.storage.importers.benchmarks import prm800k
from stepsight.storage.labelling.campaigns import find_campaign, note_export
from stepsight.storage.labelling.consensus import CONSENSUS, LabelledTrace, LabelledTraces
from stepsight.storage.labelling.files.export_events import line, write_events
from stepsight.storage.labelling.files.label_studio import tasks
from stepsight.storage.labelling.submissions import SubmittedAnnotation

Row = dict[str, Any]


@dataclass(frozen=True)
class LabelFormat:
    """A file format for labels.

    `rows(versions, campaign)` returns the rows of a trace. They are lines of JSON, the elements of a JSON array if
    `array` is True, or those of a CSV table with `columns`. If `labelled_only` is True, traces without a label are
    left out. If `with_gold` is True, an export per annotator includes hidden gold items.
    """

    title: str
    rows: Callable[[list[LabelledTrace], str], Iterable[Row]]
    array: bool = False
    columns: dict[str, type] | None = None
    labelled_only: bool = False
    with_gold: bool = False

    def write(self, traces: Iterable[LabelledTrace], path: Path, campaign: str, left_out: Counter[str]) -> int:
        """Write the file and return the number of traces written, where the versions of a trace, which are
        adjacent, count each. What the format cannot express is counted in `left_out`, by reason."""
        written = 0

        def rows() -> Iterator[Row]:
            nonlocal written
            for _, same in groupby(traces, key=lambda labelled: labelled.trace.trace_id):
                versions = list(same)
                if self.labelled_only:
                    left_out["traces without a label"] += sum(not any(version.labels) for version in versions)
                    versions = [version for version in versions if any(version.labels)]
                written += len(versions)
                yield from self.rows(versions, campaign) if versions else ()

        with open(path, "wb") as file:
            if self.columns is not None:
                file.writelines(table_parts(self.columns, rows(), "csv"))
            elif self.array:
                for number, row in enumerate(rows()):
                    file.write(f"{',' if number else '['}\n{line(row)}".encode())
                file.write(b"\n]\n" if written else b"[]\n")
            else:
                file.writelines(f"{line(row)}\n".encode() for row in rows())
        return written


def json_rows(versions: list[LabelledTrace], campaign: str) -> Iterator[Row]:
    """Yield rows of StepSight's own format: JSON Lines, which `stepsight import jsonl` reads as traces.

        {"id": "7", "problem": "…", "steps": ["…", ["…", "…"]], "labels": ["pos", null], "how": ["majority", "tie"],
         "campaign": "check", "dataset": "mr-math-invalid", "digest": "…", "chosen": "random", "answers": [
            {"annotator": "ada", "view": "whole", "labels": ["pos", "unsure"], "first": ["pos", "unsure"],
             "errors": [null, null], "comments": [null, "which sum?"], "corrections": [null, null], "flag": null,
             "guideline": 1, "submitted": "2026-03-01T09:30:00+00:00",
             "seconds": 41.5}],
         "decisions": [{"step": 1, "label": null, "reason": "…", "annotator": "eve", "own": false, "moment": "…"}]}

    Lists have one entry per step, which may be null. `step` is 0-based. A row for a single annotator has no `how`
    and no `decisions`. `digest` distinguishes the trace, including its gold labels, from other traces with the same
    id. The annotations are complete, with labels, notes, decisions, people, times and durations. Only individual
    events are missing; they are in the format `events`. An answer may also have `evidence`, the step that changed
    the annotator's mind about each step.
    """
    for labelled in versions:
        trace, origins = labelled.trace, labelled.how
        row: Row = {
            "id": trace.id,
            "problem": trace.problem,
            "steps": [s.substeps[0] if len(s.substeps) == 1 else list(s.substeps) for s in trace.steps],
            "labels": list(labelled.labels),
        }
        row |= {} if origins is None else {"how": list(origins)}
        row |= {"campaign": campaign, "dataset": trace.dataset, "digest": trace.digest}
        row |= {"chosen": labelled.annotated.item.chosen}
        row["answers"] = list(map(_answer, labelled.annotations))
        if origins is not None:
            row["decisions"] = [
                {
                    "step": decision.step,
                    "label": decision.label,
                    "reason": decision.reason,
                    "annotator": decision.user,
                    "own": decision.own,
                    "moment": decision.moment.isoformat(),
                }
                for _, decision in sorted(labelled.annotated.decisions.items())
            ]
        yield row


def _answer(annotation: SubmittedAnnotation) -> Row:
    named = any(step is not None for step in annotation.evidence)
    return {
        "annotator": annotation.user,
        "view": annotation.view,
        "labels": list(annotation.labels),
        "first": list(annotation.first),
        "errors": list(annotation.errors),
        "comments": list(annotation.comments),
        "corrections": list(annotation.corrections),
        "flag": annotation.flag,
        "guideline": annotation.guideline,
        "submitted": annotation.moment.isoformat(),
        "seconds": annotation.seconds,
    } | ({"evidence": list(annotation.evidence)} if named else {})


# The type of each column: text, integer or number. All but the first few may be empty.
COLUMNS: dict[str, type] = {
    "campaign": str,
    "dataset": str,
    "id": str,
    "step": int,
    "text": str,
    "label": str,
    "how": str,
    "annotators": int,
    "annotator": str,
    "first": str,
    "error": str,
    "comment": str,
    "correction": str,
    "flag": str,
    "chosen": str,
    "view": str,
    "guideline": int,
    "submitted": str,
    "seconds": float,
    "evidence": int,
}


def table_rows(versions: list[LabelledTrace], campaign: str) -> Iterator[Row]:
    """Yield the rows of a CSV table with one row per step. Steps count from 1, as on the web pages."""
    for labelled in versions:
        yield from step_rows(labelled, campaign)


def step_rows(labelled: LabelledTrace, campaign: str) -> Iterator[Row]:
    """Yield one row per step of a labelled trace.

    In a row for the consensus, `label` is the agreed label, `how` says how it came about, and `annotators` is the
    number of people who labelled the trace. In a row for a single `annotator`, `label` is that person's label,
    which may be `unsure`. Values for the whole trace are repeated in each row.
    """
    trace, annotation = labelled.trace, labelled.annotations[0]
    for place, step in enumerate(trace.steps):
        row = dict.fromkeys(COLUMNS) | {
            "campaign": campaign,
            "dataset": trace.dataset,
            "id": trace.id,
            "step": place + 1,
            "text": step.text,
            "label": labelled.labels[place],
            "annotators": len(labelled.annotations),
            "chosen": labelled.annotated.item.chosen,
        }
        if labelled.how is not None:
            yield row | {"how": labelled.how[place]}
            continue
        changed_by = annotation.evidence[place]
        yield row | {
            "label": annotation.labels[place],
            "annotator": annotation.user,
            "first": annotation.first[place],
            "error": annotation.errors[place],
            "comment": annotation.comments[place],
            "correction": annotation.corrections[place],
            "flag": annotation.flag,
            "view": annotation.view,
            "guideline": annotation.guideline,
            "submitted": annotation.moment.isoformat(),
            "seconds": annotation.seconds,
            "evidence": None if changed_by is None else changed_by + 1,
        }


def prm800k_rows(versions: list[LabelledTrace], campaign: str) -> Iterator[Row]:
    """Yield records of PRM800K, as `storage.importers.benchmarks.prm800k` writes them.

    `finish_reason` is `bad_problem` if more than half of the annotators flagged the problem. If there are several
    annotators, `labeler` is "consensus" and the timestamp is the latest one.
    """
    for labelled in versions:
        row = prm800k.write(labelled.relabelled())
        row["label"]["total_time"] = round(labelled.seconds * 1000)
        if 2 * len(labelled.flags) > len(labelled.annotations):
            row["label"]["finish_reason"] = "bad_problem"
        yield row | {"labeler": labelled.annotator or CONSENSUS, "timestamp": labelled.moment.isoformat()}


def stepwise_rows(versions: list[LabelledTrace], campaign: str) -> Iterator[Row]:
    """Yield rows of stepwise supervision, in which pos and neu are valid and neg is not."""
    return (stepwise.write(labelled.relabelled()) for labelled in versions)


def argilla_rows(versions: list[LabelledTrace], campaign: str) -> Iterator[Row]:
    """Yield Argilla's records, one per step of a trace, with the labels of each version.

        {"id": "mr-math-invalid/7/2", "fields": {"problem": "…", "before": "…", "step": "…"},
         "metadata": {"dataset": "mr-math-invalid", "trace": "7", "step": 2, "steps": 3, "annotators": ["ada"]},
         "suggestions": {}, "responses": {"label": [{"value": "neg", "user_id": "…"}]}, "vectors": {}}

    With one record per step, traces of any length fit the same Argilla dataset. Its fields are `problem`, `before`
    (the preceding steps) and `step`, and its question `label` takes neg, neu, pos or unsure. `step` in the metadata
    is 1-based. Annotators' labels are written as responses, and the consensus as a suggestion by the agent
    `consensus`. A response needs a `user_id`, which is derived from the annotator's name. `annotators` names
    everybody who labelled the trace.
    """
    trace = versions[0].trace
    texts = [step.text for step in trace.steps]
    about = {"dataset": trace.dataset, "trace": trace.id, "steps": len(texts)}
    names = [labelled.annotator or CONSENSUS for labelled in versions]
    for place, text in enumerate(texts):
        suggestions, responses = {}, []
        for labelled in versions:
            if labelled.annotator is None and (label := labelled.labels[place]) is not None:
                suggestions["label"] = {"value": label, "score": None, "agent": CONSENSUS}
            elif labelled.annotator is not None and (label := labelled.annotations[0].labels[place]) is not None:
                responses.append({"value": label, "user_id": argilla_user(labelled.annotator)})
        yield {
            "id": f"{trace.dataset}/{trace.id}/{place + 1}",
            "fields": {"problem": trace.problem, "before": "\n\n".join(texts[:place]), "step": text},
            "metadata": about | {"step": place + 1, "annotators": names},
            "suggestions": suggestions,
            "responses": {"label": responses} if responses else {},
            "vectors": {},
        }


def argilla_user(name: str) -> str:
    """Return a UUID that is always the same for the same annotator name."""
    return str(uuid5(NAMESPACE_URL, f"stepsight:{name}"))


FORMATS: dict[str, LabelFormat] = {
    "prm800k": LabelFormat("PRM800K: ratings of each step", prm800k_rows),
    "stepwise": LabelFormat("stepwise supervision: prompt, completions, labels", stepwise_rows, labelled_only=True),
    "label-studio": LabelFormat("Label Studio: tasks with a choice per step", tasks, array=True, with_gold=True),
    "argilla": LabelFormat("Argilla: a record per step", argilla_rows, array=True, with_gold=True),
    "jsonl": LabelFormat("JSON Lines: every annotation in full", json_rows, with_gold=True),
    "csv": LabelFormat("CSV, a row per step", table_rows, columns=COLUMNS, with_gold=True),
}


EVENTS = "events"
LABEL_FORMATS = {name: format.title for name, format in FORMATS.items()} | {EVENTS: "JSON Lines: every event"}
FORMAT_NAMES = tuple(LABEL_FORMATS)


@dataclass(frozen=True)
class LabelExport:
    """The outcome of an export. `rows` is the number of rows written, and `noun` names a row. `left_out`
    counts omitted rows by reason."""

    path: str
    rows: int
    noun: str
    left_out: Mapping[str, int]

    def __str__(self) -> str:
        lines = [f"{self.path}: {counted(self.rows, self.noun)}."]
        return "\n".join(lines + [f"  not in it: {count:,} {reason}" for reason, count in self.left_out.items()])


def export_labels(
    store: Store,
    campaign: str,
    path: str | Path,
    format: str,
    *,
    per_annotator: bool = False,
    force: bool = False,
) -> LabelExport:
    """Write the labels of a campaign to a file in one of `FORMAT_NAMES`.

    The labels are the annotators' consensus (`storage.labelling.consensus`) or, with `per_annotator`, each
    annotator's own. The format `events` always contains the whole log, after which the campaign can be deleted.
    Only a few traces are held in memory at a time, and a failed export leaves no file behind.

    Raises `NotFoundError` if the campaign does not exist. Raises `UserError` if the format is unknown, if the file
    cannot be written, or if it exists and `force` is not set.
    """
    stored = find_campaign(store, campaign)
    if format == EVENTS:
        with atomic_file(path, replace=force) as partial:
            events = write_events(store, stored, partial)
        note_export(store, stored.id, events)
        return LabelExport(str(path), events, "event", {})
    if format not in FORMATS:
        raise UserError(f"There is no format {format!r}.", f"The formats are {', '.join(FORMAT_NAMES)}.")
    target = FORMATS[format]
    labelled = LabelledTraces(
        store,
        stored,
        per_annotator=per_annotator,
        with_gold=per_annotator and target.with_gold,
    )
    inexpressible: Counter[str] = Counter()
    with atomic_file(path, replace=force) as partial:
        rows = target.write(labelled, partial, stored.name, inexpressible)
    left_out = {reason: count for reason, count in (labelled.left_out + inexpressible).items() if count}
    return LabelExport(str(path), rows, "annotation" if per_annotator else "trace", left_out)
