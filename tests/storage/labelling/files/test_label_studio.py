"""Tasks of Label Studio: written, read back, and what they may have in them."""

import json

import pytest

from stepsight.core.trace import Trace
from stepsight.storage.database.store import open_store
from stepsight.storage.labelling.campaigns import find_campaign, list_campaigns
from stepsight.storage.labelling.files.import_labels import import_labels
from stepsight.storage.labelling.files.label_formats import export_labels
from stepsight.storage.labelling.progress import campaign_progress
from stepsight.storage.labelling.submissions import iterate_annotations
from stepsight.storage.people.users import local_user
from tests.cases import each
from tests.messages import refused
from tests.storage.labelling.samples import DATASET, TRACES, Scene, campaign
from tests.storage.samples import add

SAID = {"annotator 1": ["pos", "neg"], "annotator 2": ["unsure", "neg"]}


@pytest.fixture
def other(tmp_path, sqlite_template):
    """A store that has the traces and no labels."""
    path = tmp_path / "other.db"
    path.write_bytes(sqlite_template.read_bytes())
    with open_store(str(path)) as opened:
        add(opened, TRACES, DATASET)
        yield opened


@pytest.fixture
def written(sqlite_store, tmp_path):
    """What two people said of one trace."""
    scene = Scene(sqlite_store, overlap=2)
    for name, labels in SAID.items():
        scene.label(" ".join(labels), by=name)
    path = tmp_path / "label-studio.json"
    export_labels(sqlite_store, "first", path, "label-studio", per_annotator=True)
    return path


def read(store, path, **who):
    """The labels by annotator after an import."""
    import_labels(store, path, local_user(store), campaign="again", dataset=DATASET, **who)
    return {one.user: list(one.labels) for one in iterate_annotations(store, find_campaign(store, "again").id)}


def test_each_ones_labels_are_read_back(other, written):
    assert read(other, written) == SAID
    again = import_labels(other, written, local_user(other), campaign="again", dataset=DATASET)
    assert (again.added, again.repeated) == (0, 2)
    assert read(other, written) == SAID


def test_labels_that_go_back_into_their_campaign_are_known(sqlite_store, written):
    done = import_labels(sqlite_store, written, local_user(sqlite_store), campaign="first")
    assert (done.added, done.repeated) == (0, 2)


def test_a_task_has_the_choice_of_each_step(written):
    (task,) = json.loads(written.read_text())
    assert task["data"] == {
        "id": "two",
        "dataset": DATASET,
        "problem": "What is 1 + 1?",
        "steps": [{"text": "It is a sum."}, {"text": "So 3.\nDone."}],
        "annotators": ["annotator 1", "annotator 2"],
    }
    one, two = task["annotations"]
    assert [(r["from_name"], r["to_name"], r["value"]) for r in one["result"]] == [
        ("label_0", "step_0", {"choices": ["pos"]}),
        ("label_1", "step_1", {"choices": ["neg"]}),
    ]
    assert [r["value"]["choices"] for r in two["result"]] == [["unsure"], ["neg"]]


def studio(changes=None, **annotation):
    """A task as Label Studio exports one, with an annotation by its user 7."""
    result = [
        {"id": "Dx", "from_name": "label_1", "to_name": "step_1", "type": "choices", "value": {"choices": ["neg"]}},
        {"id": "Ab", "from_name": "note", "to_name": "problem", "type": "textarea", "value": {"text": ["odd"]}},
    ]
    one = {"id": 1, "completed_by": 7, "result": result, "was_cancelled": False, "lead_time": 4.288,
           "created_at": "2021-03-09T22:16:08.728353Z"} | annotation  # fmt: skip
    data = {"problem": "What is 1 + 1?", "steps": [{"text": "It is a sum."}, {"text": "So 3.\nDone."}]}
    return [{"id": 1, "data": data | (changes or {}), "annotations": [one], "project": 83}]


def save(path, rows):
    path.write_text(json.dumps(rows, indent=1))
    return path


@pytest.mark.parametrize(
    ("who", "name"),
    [(7, "label-studio-7"), ({"id": 7, "email": "a@x.org"}, "a@x.org"), ({"id": 7}, "label-studio-7")],
)  # fmt: skip
def test_an_annotation_is_of_whom_label_studio_names(other, tmp_path, who, name):
    path = save(tmp_path / "tasks.json", studio(completed_by=who))
    assert read(other, path) == {name: [None, "neg"]}
    assert read(other, path, annotator="eve")["eve"] == [None, "neg"]


def test_annotations_that_are_skipped_or_without_a_label_are_ignored(other, tmp_path):
    for changes in ({"was_cancelled": True}, {"result": []}):
        assert read(other, save(tmp_path / "tasks.json", studio(**changes))) == {}
    assert read(other, save(tmp_path / "tasks.json", studio(lead_time=10**400))) == {
        "label-studio-7": [None, "neg"]
    }


def result(name, value, type="choices"):
    return {"type": type, "from_name": name, "to_name": f"step_{name.strip('abcdefghijklmnopqrstuvwxyz_-')}",
            "value": value}  # fmt: skip


def answers(*choices):
    return {"result": [result(name, {"choices": value}) for name, value in choices]}


@pytest.mark.parametrize(
    "given",
    [
        [("label_0", ["pos"]), ("label_1", ["neg"]), ("error_0", ["slip"]), ("error_1", ["neg"])],
        [("kind_0", ["slip"]), ("mark_0", ["pos"]), ("mark_1", ["NEG "]), ("kind_1", ["slip"])],
        [("label_0", ["pos"]), ("label_1", ["neg"]), ("kind-1", ["slip"])],
    ],
)
def test_a_second_question_of_a_step_is_no_label(other, tmp_path, given):
    path = save(tmp_path / "tasks.json", studio(**answers(*given)))
    assert read(other, path) == {"label-studio-7": ["pos", "neg"]}


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("Let x = 2.\n\nSo 3. ", "Let x = 2.\r\n\r\nSo 3."),
        ("2\xa0+ 3 \u2212 1", "2 + 3 - 1"),
        ("caf\xe9 \u2019", "cafe\u0301 '"),
        ("a\u200bb", " ab\n"),
    ],
)
def test_a_trace_is_found_however_a_tool_writes_its_white_space(other, tmp_path, stored, shown):
    for name, first, last in (("looks", stored, stored), ("other", stored, "Another.")):
        add(other, [Trace.of(f"What? {first}", [first, last], id=name)], DATASET)
    data = {"problem": f"What? {shown}", "steps": [{"text": shown}, {"text": shown}]}
    assert read(other, save(tmp_path / "tasks.json", studio(data))) == {"label-studio-7": [None, "neg"]}


def test_of_traces_that_look_alike_the_named_id_or_else_the_same_text_is_meant(other, tmp_path):
    add(other, [Trace.of("?", [f"a{sign} b"], id=name) for name, sign in (("x", "\xa0"), ("y", " "))], DATASET)
    asked = answers(("label_0", ["pos"]))
    data, named = {"problem": "?", "steps": ["a\u2003b"]}, {"id": "y", "dataset": DATASET}
    for about in ({"steps": ["a  b"]}, named, named | {"steps": ["a\xa0 b"]}):
        read(other, save(tmp_path / "tasks.json", studio(data | about, **asked)))
    (one,) = iterate_annotations(other, find_campaign(other, "again").id)
    assert one.item.external_id == "y"
    with refused():
        read(other, save(tmp_path / "tasks.json", studio(data, **asked)))


def choice(value, name="label_1"):
    return {"result": [{"type": "choices", "from_name": name, "value": {"choices": value}}]}


@pytest.mark.parametrize(
    "rows",
    [
        studio(**choice(["wrong"])),
        studio(**choice(["neg", "pos"])),
        studio(**choice(["neg"], "label_2")),
        studio(created_at="yesterday"),
        studio(completed_by=None),
        studio(result=None),
        studio(**choice(["neg"], "label-1")),
        studio(**choice(["neg"], "label1")),
        studio(**choice(["neg"], "label[1]")),
        studio(**choice(["neg"], "1_label")),
        studio(**choice(["neg"], "step_1_label")),
        studio(**choice(["neg"], "label")),
        studio(**answers(("label_0", ["pos"]), ("label-1", ["neg"]))),
        studio(result=[result("label_1", {"rating": 5}, "rating")]),
        studio(**answers(("kind_0", ["slip"]), ("reason_0", ["why"]))),
        studio(**answers(("later_0", ["pos"]), ("label.0", ["neg"]))),
        studio(**answers(("label_0", ["pos"]), ("label_0", ["neg"]))),
        studio({"steps": [{"text": "It is a sum."}, {"text": "So 4."}]}),
        studio({"steps": [{"text": text} for text in ("It is a sum.", "So 3.\nDone.", "More.")]}),
        studio({"steps": [{"text": "Another."}]}),
        studio({"steps": [{"body": "It."}]}),
        studio({"problem": 7}),
        studio(result=[result("label_1", {"paragraphlabels": ["neg"]}, "paragraphlabels")]),
        studio(result=[result("label_1", {"choices": ["neg"]}) | {"to_name": "step_0"}]),
    ],
)
def test_a_task_that_cannot_be_read_is_told_and_nothing_is_stored(other, tmp_path, rows):
    path = save(tmp_path / "tasks.json", [*studio(), *rows])
    with refused():
        read(other, path)
    assert list_campaigns(other) == []


def test_a_campaign_and_a_dataset_have_to_be_named(other, tmp_path):
    path = save(tmp_path / "tasks.json", studio())
    with refused():
        import_labels(other, path, local_user(other))
    with refused():
        import_labels(other, path, local_user(other), campaign="again")


@each(
    "row",
    [
        {"problem": "?", "steps": [], "label_0": "pos", "annotator": 1, "annotation_id": 3},
        {"fields": {"problem": "?", "step": "It."}, "metadata": {"trace": "two"}, "responses": {}},
        {"id": "two", "problem": "?", "steps": ["It."], "labels": ["pos"], "answers": []},
        {"question": {"problem": "?"}, "label": {"steps": []}, "labeler": "ann"},
    ],
)
def test_labels_in_forms_that_are_not_read_name_what_is(other, tmp_path, row):
    with refused():
        import_labels(other, save(tmp_path / "labels.json", [row]), local_user(other), campaign="again")
    assert list_campaigns(other) == []


def test_a_table_of_label_studio_names_what_is_read(other, tmp_path):
    (tmp_path / "labels.csv").write_text("annotation_id,annotator,label_0\n3,1,pos\n")
    with refused():
        import_labels(other, tmp_path / "labels.csv", local_user(other), campaign="again")


def test_labels_that_the_campaign_has_otherwise_are_refused(other, tmp_path):
    read(other, save(tmp_path / "tasks.json", studio()))
    with refused():
        read(other, save(tmp_path / "others.json", studio(**choice(["pos"]))))
    assert read(other, tmp_path / "tasks.json") == {"label-studio-7": [None, "neg"]}


def test_labels_fill_the_free_slots_of_a_campaign(other, tmp_path):
    made = campaign(other, None, name="again", overlap=1)
    assert read(other, save(tmp_path / "tasks.json", studio())) == {"label-studio-7": [None, "neg"]}
    progress = campaign_progress(other, made.id)
    assert (progress.submitted, progress.slots) == (1, len(TRACES))


def test_labels_of_whole_traces_do_not_go_into_a_stepwise_campaign(other, tmp_path):
    campaign(other, None, name="again", view="stepwise")
    with refused():
        read(other, save(tmp_path / "tasks.json", studio()))
