"""Folders as programs write them and people copy them: drawn at random, with what is right for each."""

import json
from itertools import count
from pathlib import Path
from urllib.parse import quote

from stepsight.core.errors import UserError
from stepsight.storage.importers.column_mapping import ColumnMap
from stepsight.storage.importers.data_files import find_data
from stepsight.storage.jobs.import_folder import find_files
from tests.fuzz.attack import COUNT
from tests.seeds import chance

COLUMNS = ColumnMap("question", "steps")
# How programs number files, from 0 or 1.
NUMBERED = (
    ("train-{:05d}-of-{:05d}.jsonl", 0), ("data/test-{:05d}-of-{:05d}-0123456789abcdef.json", 0),
    ("{}-of-{}.jsonl", 1), ("x/{:05d}-of-{:05d}.ndjson", 0), ("a_{}_of_{}.jsonl", 1),
    ("a b.c-{:03d}-of-{:03d}.jsonl", 0),
)  # fmt: skip
UNREAD = ("pens.xlsx", "t.ods", "old/a.jsonl.bak", "x.txt", "fig.png", "b.pkl", "all.zip", "deep/er/c.docx")
ABOUT = ("README.md", "LICENSE", "_SUCCESS", "_metadata", ".git/config", "dataset_infos.json", "__MACOSX/a.jsonl")
VALUES = ("en", "de at", "3/4", "a=b", "é", "100%", "")
EMPTY = "__HIVE_DEFAULT_PARTITION__"


def put(folder, name, numbers):
    """Write a file of one row or more, each about the next number, and return how many."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"question": f"{next(numbers)}?", "steps": ["A step."]} for _ in range(1 + len(name) % 2)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return len(rows)


def problems(folder):
    kind = find_data(folder).kind(COLUMNS)
    return [row["question"] for _, row in kind.rows([], "f")]


def test_numbered_files_are_read_whole_or_refused(tmp_path):
    for number in range(COUNT):
        rng, numbers, folder = chance(f"shards:{number}"), count(), tmp_path / str(number)
        form, first = rng.choice(NUMBERED)
        total = rng.randint(2, 12)
        names = [form.format(one, total) for one in range(first, first + total)]
        missing = rng.sample(names, rng.choice((0, 0, 1, 2)) if total > 2 else rng.randint(0, 1))
        for name in names:
            if name not in missing:
                put(folder, name, numbers)
        extra = [name for name in rng.sample(ABOUT, 3) if not (folder / name).exists()]
        for name in extra:
            put(folder, name, count(1_000))
        if not missing:
            assert problems(folder) == [f"{one}?" for one in range(next(numbers))], (number, names)
            ((file,), _) = find_files(folder)
            assert file.error is None
            continue
        for read in (find_data, lambda path: find_files(path)[0][0].error):
            try:
                error = read(folder)
            except UserError as refusal:
                error = refusal
            assert isinstance(error, UserError), (number, names, missing)
            lost = sorted(missing)[0].rsplit("-0123", 1)[0].rsplit(".", 1)[0]
            # Without the last of files that are numbered from 1, they may be numbered from 0.
            assert (lost if not first else "is missing") in error.message, (number, error.message)


def test_folders_of_values_are_columns(tmp_path):
    for number in range(COUNT):
        rng, numbers, folder = chance(f"values:{number}"), count(), tmp_path / str(number)
        form = rng.choice(("{}.jsonl", "part-{:05d}-c000.json"))
        keys = rng.sample(("lang", "level", "split", "_y", "a.b", "straße"), rng.randint(1, 3))
        expected = {}
        for file in range(rng.randint(1, 6)):
            values = {key: rng.choice((*VALUES, None)) for key in keys}
            parts = [f"{key}={EMPTY if value is None else quote(value, safe=' ')}" for key, value in values.items()]
            name = "/".join([*parts, form.format(file)])
            before = next(numbers)
            numbers = count(before)
            size = put(folder, name, numbers)
            expected |= {f"{before + one}?": values for one in range(size)}
        (folder / "_SUCCESS").touch()
        rows = [row for _, row in find_data(folder).kind(COLUMNS).rows([], "f")]
        assert {row["question"]: {key: row[key] for key in keys} for row in rows} == expected, number


def test_what_is_not_read_is_named(tmp_path):
    for number in range(COUNT):
        rng, folder = chance(f"unread:{number}"), tmp_path / str(number)
        unread, about = rng.sample(UNREAD, rng.randint(0, 5)), rng.sample(ABOUT, rng.randint(0, 5))
        data = rng.choice(("", "a.jsonl", "deep/a.tsv", "A.JSON"))
        for name in (*about, *filter(None, [data])):
            put(folder, name, count())
        for name in unread:
            put(folder, name, count())
            (folder / name).write_bytes(b"PK\x03\x04" + bytes(30))
        folder.mkdir(exist_ok=True)
        try:
            files, unread_names = find_files(folder)
            said = unread_names.split(", ") + [str(file.error) for file in files if file.error]
            notes = find_data(folder).kind(COLUMNS).notes() if data else ()
        except UserError as error:
            assert not data
            said, notes = [str(error)], ()
        assert all(any(Path(name).name in one for one in said) for name in unread), (number, unread, said)
        assert not any(name in one for name in about for one in said), (number, about, said)
        assert not data or all(any(name in note for note in notes) for name in unread), (number, notes)
