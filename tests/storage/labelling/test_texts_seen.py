"""What a person saw of a text counts wherever the text comes again: in another campaign, in another dataset."""

import csv
import json
from pathlib import Path

import pytest

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.labelling.campaigns import Campaign, close_campaign, find_campaign
from stepsight.storage.labelling.files.export_labels import export_labels
from stepsight.storage.labelling.files.import_labels import import_labels
from stepsight.storage.labelling.queue import assign_next
from stepsight.storage.labelling.results.annotations import SubmittedAnnotation, iterate_annotations
from stepsight.storage.labelling.results.consensus import read_trace_labels
from stepsight.storage.labelling.results.ratings import read_ratings
from stepsight.storage.labelling.review import read_review
from stepsight.storage.people.exposures import exposures_of, is_unblinded, note_texts
from stepsight.storage.people.users import User, local_user
from stepsight.storage.traces.queries import StoredTrace
from tests.storage.labelling.samples import TWO, campaign, label_all, people, person, take, together
from tests.storage.samples import add, evaluator, scores

# The text of `TWO`, cut and broken otherwise, under another id and with other gold.
COPY = Trace.of("What is 1 + 1?", ["It is a\nsum.", "So 3.", "Done. "], ["pos", "pos", "neu"], id="copy")


@pytest.fixture
def pair(store: Store) -> tuple[StoredTrace, StoredTrace]:
    """The text in two datasets, `sums` and `copies`; an evaluator has judged the first."""
    (one,) = add(store, [TWO])
    (copy,) = add(store, [COPY], "copies")
    save_judgments(store, evaluator(store).id, [Judgment(one, Mode.OFFLINE, scores(3))])
    return one, copy


def shows_scores(store: Store, **changes: object) -> Campaign:
    return campaign(store, None, name="shows", shows="scores", evaluator=1, **changes)


def blind(store: Store, dataset: str = "copies", **changes: object) -> Campaign:
    return campaign(store, None, name="blind", dataset=dataset, **({"overlap": 2} | changes))


def label(store: Store, of: Campaign, user: User, last: str = "neg") -> None:
    task = take(store, of, user)
    label_all(store, task, user, ["pos"] * (len(task.trace.steps) - 1) + [last])


def annotations(store: Store, of: Campaign) -> dict[str, SubmittedAnnotation]:
    return {one.user: one for one in iterate_annotations(store, of.id)}


def seen(store: Store, user: User, trace: StoredTrace) -> frozenset[str]:
    with store.read() as session:
        return exposures_of(session, user.id, trace.trace_id)


@pytest.mark.parametrize("dataset", ["sums", "copies"])
@pytest.mark.usefixtures("pair")
def test_scores_seen_in_one_campaign_leave_the_label_of_another_out(
    store: Store, dataset: str, tmp_path: Path
) -> None:
    """By the same trace and by a copy of it. The other person has seen nothing, and stays blind."""
    ann, ben = people(store, 2)
    # To get it is enough: she labels nothing there.
    take(store, shows_scores(store), ann)
    second = blind(store, dataset)
    label(store, second, ann, "neg")
    label(store, second, ben, "pos")
    found = annotations(store, second)
    assert {name: one.exposed for name, one in found.items()} == {ann.name: {"scores"}, ben.name: frozenset()}
    ratings = read_ratings(store, second)
    assert (ratings.annotations, ratings.exposed) == (2, 1)
    assert ratings.queue.last.people == (ben.name,)
    # Ben's label alone; with Ann's it is a tie.
    (alone,), (both,) = together(store, second.id), together(store, second.id, exposed=True)
    assert (alone.labels[-1], alone.how) == ("pos", ("majority",) * len(alone.labels))
    assert (both.labels[-1], (both.how or ())[-1]) == (None, "tie")
    done = export_labels(store, second.name, tmp_path / "labels.jsonl", "jsonl")
    (row,) = map(json.loads, (tmp_path / "labels.jsonl").read_text().splitlines())
    assert [answer["annotator"] for answer in row["answers"]] == [ben.name]
    assert sum(done.left_out.values()) == 1


def test_it_counts_in_a_campaign_that_comes_later(store: Store, pair: tuple[StoredTrace, StoredTrace]) -> None:
    (ann,) = people(store, 1)
    first = shows_scores(store)
    label(store, first, ann)
    close_campaign(store, first.id)
    second = blind(store)
    assert seen(store, ann, pair[1]) == {"scores"}
    label(store, second, ann)
    assert annotations(store, second)[ann.name].exposed == {"scores"}


def test_a_review_exposes_copies_of_the_text_too(store: Store, pair: tuple[StoredTrace, StoredTrace]) -> None:
    (ann,) = people(store, 1)
    first = campaign(store, None, name="first")
    task = take(store, first, ann)
    label_all(store, task, ann, ["pos", "neg"])
    assert read_review(store, task.slot_id, ann) is not None
    assert seen(store, ann, pair[1]) == {"gold", "scores"}


def test_a_text_that_was_scored_by_hand_is_one_of_those(
    store: Store, pair: tuple[StoredTrace, StoredTrace]
) -> None:
    """Also where no campaign has the text yet, and in any case where one has."""
    (ann, ben), local = people(store, 2), local_user(store)
    entered = Trace.of(" What is 1 + 1? ", ["It is a sum. So 3. Done."])
    for user in (ann, local):
        note_texts(store, user, [entered], "scores")
    other = Trace.of("What is 1 + 1?", ["It is a sum. So 2. Done."])
    note_texts(store, ben, [other], "scores")
    assert [seen(store, ann, one) for one in pair] == [{"scores"}] * 2
    assert [seen(store, user, pair[0]) for user in (ben, local)] == [frozenset()] * 2
    blind(store)
    note_texts(store, local, [entered], "scores")
    assert [seen(store, local, one) for one in pair] == [{"scores"}] * 2


@pytest.mark.usefixtures("pair")
def test_annotations_of_texts_labelled_before_are_marked_and_count(store: Store, tmp_path: Path) -> None:
    ann, ben = people(store, 2)
    first, second = campaign(store, None, name="first", after_submission="nothing"), blind(store)
    label(store, first, ann)
    for user in (ann, ben):
        label(store, second, user)
    assert not annotations(store, first)[ann.name].labelled_before
    found = annotations(store, second)
    assert {name: (one.labelled_before, one.exposed) for name, one in found.items()} == {
        ann.name: (True, frozenset()),
        ben.name: (False, frozenset()),
    }
    ratings = read_ratings(store, second)
    assert (ratings.labelled_before, ratings.exposed, len(ratings.queue.last.people)) == (1, 0, 2)
    # The log keeps it, and the tables tell it.
    with open_store(str(tmp_path / "other.db")) as other:
        add(other, [COPY], "copies")
        export_labels(store, second.name, tmp_path / "log", "events")
        import_labels(other, tmp_path / "log", person(other, "boss"), campaign="log")
        read = annotations(other, find_campaign(other, "log"))
        assert {name: one.labelled_before for name, one in read.items()} == {ann.name: True, ben.name: False}
    export_labels(store, second.name, tmp_path / "table.csv", "csv", per_annotator=True)
    with open(tmp_path / "table.csv", newline="", encoding="utf-8-sig") as file:
        told = {(row["annotator"], row["labelled_before"]) for row in csv.DictReader(file)}
    assert told == {(ann.name, "1"), (ben.name, "0")}


def test_gold_stays_hidden_while_the_text_is_ahead_in_another_dataset(
    store: Store, pair: tuple[StoredTrace, StoredTrace]
) -> None:
    one, copy = pair
    (ann,) = people(store, 1)
    first = campaign(store, None, name="first")
    second = blind(store)
    task = take(store, first, ann)
    label_all(store, task, ann, ["pos", "neg"])
    assert not is_unblinded(store, ann.id, one.trace_id)
    assert read_review(store, task.slot_id, ann) is None
    # She has begun with the copy: what others say of the first is not for her.
    take(store, second, ann)
    assert [labels.ahead for labels in read_trace_labels(store, one.trace_id, ann)] == [True]
    label(store, second, ann)
    assert is_unblinded(store, ann.id, one.trace_id)
    assert is_unblinded(store, ann.id, copy.trace_id)
    assert read_review(store, task.slot_id, ann) is not None
    assert assign_next(store, second.id, ann) is None
