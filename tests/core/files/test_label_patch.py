"""Label patches as files: reading back and refusing."""

import hashlib
import json

from stepsight.core.files.label_patch import (
    LabelChange,
    Patch,
    format_patch,
    parse_patch,
    read_patch,
)
from stepsight.core.trace import VALID
from tests.cases import each
from tests.messages import refused

ONE = LabelChange("b", "d1", 1, "neg", "pos", "It is so.", 7, "anna", "2026-11-20T09:12:44+00:00")
TWO = LabelChange("a", "d2", 0, None, VALID, "Fine.", None, "ben", "2026-11-20T10:00:00+00:00")
PATCH = Patch("sums", "f" * 64, "2026-11-21T14:30:00+00:00", (ONE, TWO), "fixes.json")


def test_a_patch_is_read_back(tmp_path):
    path = tmp_path / "fixes.json"
    path.write_text(format_patch(PATCH), encoding="utf-8")
    assert read_patch(path) == PATCH
    # Sorted by trace and step, whatever the order given; steps count from 1 in the file.
    assert [change.place for change in PATCH.changes] == ["trace 'a', step 1", "trace 'b', step 2"]
    found = json.loads(path.read_text("utf-8"))
    assert (found["format"], found["version"], found["dataset"]) == ("stepsight-label-patch", 1, "sums")
    assert found["entries"][1] == {
        "trace": "b", "trace_digest": "d1", "step": 2, "from": "neg", "to": "pos", "reason": "It is so.",
        "dispute": 7, "by": "anna", "moment": "2026-11-20T09:12:44+00:00",
    }  # fmt: skip
    assert (PATCH.size, PATCH.about()["digest"]) == ("2 labels of 2 traces", found["digest"])
    assert Patch("sums", "", "", (ONE,)).size == "1 label of 1 trace"


def test_the_digest_is_of_the_entries_alone():
    later = Patch("other", "0" * 64, "2027-01-01T00:00:00+00:00", (TWO, ONE), "else.json")
    assert later.digest == PATCH.digest
    # By hand: the entries, sorted, with sorted keys, without spaces, in ASCII.
    entries = json.loads(format_patch(PATCH))["entries"]
    text = json.dumps(entries, sort_keys=True, separators=(",", ":"))
    assert PATCH.digest == hashlib.sha256(text.encode("ascii")).hexdigest()
    assert Patch("sums", "", "", (ONE,)).digest != PATCH.digest


def changed(**changes):
    return json.dumps(json.loads(format_patch(PATCH)) | changes)


def entry(**changes):
    """The file with its first entry changed."""
    first, second = json.loads(format_patch(PATCH))["entries"]
    return changed(entries=[first | changes, second])


@each(
    "text",
    [
        "{",
        "[]",
        '{"format": "other"}',
        changed(version=2),
        changed(dataset=None),
        changed(entries={}),
        changed(entries=[1]),
        entry(more=1),
        entry(step=0),
        entry(step=True),
        entry(to="unsure"),
        entry(reason="Another."),
        entry(trace="b", step=2),
    ],
)
def test_refusals(text):
    with refused():
        parse_patch(text, "folder/fixes.json")


def test_a_file_that_cannot_be_read(tmp_path):
    with refused():
        read_patch(tmp_path / "none.json")
    (tmp_path / "bytes").write_bytes(b"\xff")
    with refused():
        read_patch(tmp_path / "bytes")
