"""Importing people's labels from a file in a single transaction."""

import re
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError, counted, located
from stepsight.core.files.jsonl import open_input
from stepsight.core.files.text_lines import first_sign
from stepsight.storage.database.labelling_schema import CampaignRow
from stepsight.storage.database.schema import DatasetRow, check_name
from stepsight.storage.database.store import Store
from stepsight.storage.importers import guess_kind
from stepsight.storage.importers.rows.kind import LabelSource, Row, check_label_fields, json_rows, label_source
from stepsight.storage.labelling.files.import_events import EventImporter
from stepsight.storage.labelling.files.label_studio import LabelStudioImporter
from stepsight.storage.people.users import User, get_user

Located = Iterator[tuple[str, Row]]


@dataclass(frozen=True)
class LabelImport:
    """The outcome of an import. `noun` is event or annotation, `added` the number of new ones, and `repeated` the
    number that were already stored."""

    campaign: str
    noun: str
    added: int
    repeated: int

    def __str__(self) -> str:
        if not self.added and not self.repeated:
            return f"{self.campaign}: nothing added, the file has no {self.noun}s."
        if not self.added:
            return f"{self.campaign}: nothing new, {counted(self.repeated, self.noun)} already stored."
        repeated = f", {self.repeated:,} already stored" if self.repeated else ""
        return f"{self.campaign}: {counted(self.added, self.noun)} added{repeated}."


def import_labels(
    store: Store,
    path: str | Path,
    user: User,
    *,
    campaign: str | None = None,
    dataset: str | None = None,
    annotator: str | None = None,
    lines: Iterable[bytes] | None = None,
) -> LabelImport:
    """Store all labels in a file. Importing the same file again adds nothing. If its `lines` are given, the file is
    not opened.

    The file can contain what `export_labels` writes as `events`, or tasks of Label Studio.

    The traces must be in the store with the same text and gold labels as when they were labelled. `campaign`
    defaults to the campaign named in the file and is created by `user` if it does not exist. Missing people are
    added without a password. Tasks of Label Studio name no campaign, so it must be given. Their traces are looked
    up by problem and steps, in `dataset` or else in the campaign's dataset. Their labels are attributed to
    `annotator`, or else to the person named in the task.

    Raises `UserError`, with a message that names the line, and stores nothing if a row is not of any of these
    kinds, if a trace is missing or differs, or if the labels contradict those of the campaign.
    """
    if campaign is not None:
        check_name(campaign, "the name of the campaign")
    opened = open_input(path) if lines is None else nullcontext(lines)
    with opened as file, store.write() as session:
        content = iter(file)
        head = next(content, b"")
        if first_sign(head) not in ("{", "["):
            check_label_fields(re.split(r"[,;\t\"]+", head.decode("utf-8-sig", "replace").strip()), str(path))
        rows: Located = json_rows(chain([head], content), str(path))
        first = next(rows, None)
        if first is None:
            raise UserError(f"{path}: no row found, the file is empty.", "Check the path.")
        rows = chain([first], rows)
        if "format" in first[1]:
            log = EventImporter(session, rows, campaign)
            log.run()
            added = 0 if log.repeated else log.events
            return LabelImport(log.name, "event", added, log.events - added)
        if label_source(first[1]) is LabelSource.LABEL_STUDIO:
            if campaign is None:
                raise UserError(f"{path}: its rows name no campaign.", "Name one (--campaign).")
            searched = _dataset_of(session, str(path), campaign, dataset)
            importer = LabelStudioImporter(session, campaign, searched, user)
            for where, task in rows:
                with located(where):
                    importer.add(task, annotator)
            importer.finish()
            return LabelImport(campaign, "annotation", importer.annotations, importer.repeated)
        check_label_fields(first[1], first[0])
        raise _not_labels_error(first[1], first[0])


def import_label_lines(
    store: Store, lines: Iterable[bytes], name: str, user_id: int, campaign: str, dataset: str, annotator: str
) -> tuple[LabelImport, int]:
    """Like `import_labels`, but for the lines of a file called `name`, added by the user with this id.

    Also return the database id of the campaign's dataset. `dataset` may be empty if the file or the campaign names
    it, and `annotator` if the file does.
    """
    user = get_user(store, user_id)
    imported = import_labels(
        store, name, user, campaign=campaign, dataset=dataset or None, annotator=annotator or None, lines=lines
    )
    with store.read() as session:
        dataset_id = select(CampaignRow.dataset_id).where(CampaignRow.name == imported.campaign)
        return imported, session.scalars(dataset_id).one()


def _dataset_of(session: Session, path: str, campaign: str, dataset: str | None) -> str:
    """Return the name of the dataset in which to look up traces that the file does not name."""
    if dataset is None:
        datasets = select(DatasetRow.name).join(CampaignRow, CampaignRow.dataset_id == DatasetRow.id)
        dataset = session.scalar(datasets.where(CampaignRow.name == campaign))
    if dataset is None:
        raise UserError(
            f"{path}: its rows do not name their traces, and there is no campaign {campaign!r}.",
            "Name the dataset (--dataset).",
        )
    return dataset


def _not_labels_error(row: Row, where: str) -> UserError:
    if "answers" in row:
        return UserError(
            f"{where}: labels as JSON Lines, which cannot be imported.",
            "Import the log of the campaign (stepsight export labels CAMPAIGN FILE --format events).",
        )
    kind = guess_kind(row)
    if "annotators" in row or kind is None:
        return UserError(f"{where}: no human labels.", "Expected a download of labels (stepsight export labels).")
    return UserError(
        f"{where}: the row looks like {kind}, which are traces, not human labels.",
        f"Import it as a dataset (stepsight import {kind} FILE).",
    )
