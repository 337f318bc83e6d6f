"""Files of datasets in the shapes in which people keep them: folders that `datasets` saved, a hub's, tables."""

import gzip
import hashlib
import json
from typing import Any

import datasets
import pyarrow
import pyarrow.parquet
import pytest

from stepsight.core.hubs import hub_cache
from stepsight.storage.importers import find_kind
from stepsight.storage.importers.column_mapping import ColumnMap
from stepsight.storage.importers.data_files import FolderPart, choose_part, fetch_data, find_data, is_hub_id
from stepsight.storage.traces.imports import import_table
from stepsight.storage.traces.queries import find_dataset, iterate_traces, list_datasets
from tests.cases import each
from tests.hub import COMMIT, Hub, point_to
from tests.messages import refused
from tests.storage.samples import write_lines

ROWS: list[dict[str, Any]] = [
    {
        "question": f"What is {n} + 1?",
        "solution": {"steps": [{"text": "A sum.", "rating": 1}, {"text": f"So {n + 2}.", "rating": -1}]},
        "level": n,
    }
    for n in range(7)
]
COLUMNS = ColumnMap("question", "solution.steps.text", "solution.steps.rating")


def stored(store, path, columns=COLUMNS, part=""):
    import_table(store, columns, find_data(path, part), "table")
    return list(iterate_traces(store, find_dataset(store, "table").id))


def check(traces):
    assert [trace.problem for trace in traces] == [row["question"] for row in ROWS]
    assert [step.text for step in traces[3].steps] == ["A sum.", "So 5."]
    assert [label.text for label in traces[3].labels] == ["pos", "neg"]
    assert traces[3].meta == {"level": 3}


def save(folder, rows=ROWS):
    datasets.Dataset.from_list(rows).save_to_disk(folder, num_shards=3)


@pytest.mark.parametrize("format", ["parquet", "jsonl", "json.zst", "arrow", "stream"])
def test_a_file_of_any_format_is_a_table(sqlite_store, tmp_path, format):
    path, table = tmp_path / f"table.{format}", pyarrow.Table.from_pylist(ROWS)
    if format == "parquet":
        pyarrow.parquet.write_table(table, path)
    elif format in ("arrow", "stream"):
        kind = pyarrow.ipc.new_file if format == "arrow" else pyarrow.ipc.new_stream
        with kind(str(path), table.schema) as writer:
            writer.write_table(table)
    else:
        array = pyarrow.compress(json.dumps(ROWS).encode(), codec="zstd", asbytes=True)
        path.write_bytes(
            array if format == "json.zst" else "".join(f"{json.dumps(row)}\n" for row in ROWS).encode()
        )
    check(stored(sqlite_store, path))
    assert list_datasets(sqlite_store)[0].sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_saved_dataset_is_read_in_order_and_importing_it_twice_changes_nothing(store, tmp_path):
    save(tmp_path / "saved")
    assert len(list((tmp_path / "saved").glob("*.arrow"))) == 3
    check(stored(store, tmp_path / "saved"))
    assert "nothing new, 7 traces" in str(import_table(store, COLUMNS, find_data(tmp_path / "saved"), "table"))
    (dataset,) = list_datasets(store)
    assert (dataset.source, len(dataset.sha256)) == ("saved", 64)


def test_one_part_of_a_saved_dictionary_is_named(sqlite_store, tmp_path):
    parts = {"train": datasets.Dataset.from_list(ROWS), "test": datasets.Dataset.from_list(ROWS[:2])}
    datasets.DatasetDict(parts).save_to_disk(tmp_path / "both")
    with refused():
        find_data(tmp_path / "both")
    with refused():
        find_data(tmp_path / "both", "dev")
    check(stored(sqlite_store, tmp_path / "both", part="train"))


def test_a_folder_of_numbered_files_is_one_part(sqlite_store, tmp_path):
    for number, rows in enumerate((ROWS[:4], ROWS[4:])):
        for suffix in (".parquet", ".jsonl.gz"):
            path = tmp_path / suffix[1:] / "data" / f"train-{number:05d}-of-00002{suffix}"
            path.parent.mkdir(parents=True, exist_ok=True)
            if suffix == ".parquet":
                pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
            else:
                path.write_bytes(gzip.compress("".join(f"{json.dumps(row)}\n" for row in rows).encode()))
            (path.parent.parent / "README.md").write_text("about it")
    check(stored(sqlite_store, tmp_path / "parquet"))
    check(stored(sqlite_store, tmp_path / "jsonl.gz"))


def test_parts_are_told_by_the_names_of_their_files():
    names = ["README.md", ".git/a.json", "dataset_infos.json", "main/test-00000-of-00001.parquet",
             "main/train-00000-of-00002.parquet", "main/train-00001-of-00002.parquet", "main/train.jsonl",
             "other/train-00000-of-00001.parquet"]  # fmt: skip
    assert choose_part(names, "A/b", "main/test") == choose_part(names, "A/b", "test")
    assert choose_part(names, "A/b", "test").files == (names[3],)
    assert choose_part(names, "A/b", "main/train").files == tuple(names[4:6])
    # The same file twice, compressed and not.
    assert choose_part(["a.jsonl.gz", "a.jsonl", "a.json.zst"], "A/b").files == ("a.jsonl",)
    # What datasets saved, with its cache.
    saved = ["x/state.json", "x/cache-0f3a.arrow", "x/data-00000-of-00002.arrow", "x/data-00001-of-00002.arrow"]
    assert choose_part(saved, "A/b") == FolderPart("x", tuple(saved[2:]))
    with refused():
        choose_part(names, "A/b")
    with refused():
        choose_part(["README.md"], "A/b")
    assert [is_hub_id(text) for text in ("A/b-c", "a/b.csv", "a/b.csv.gz", "a", "a/b/c", "../b", "/a/b")] == [
        True
    ] + [False] * 6


def test_a_null_in_a_saved_table_is_told_by_its_row_of_all_files(sqlite_store, tmp_path):
    save(tmp_path / "saved", [*ROWS[:5], ROWS[5] | {"question": None}, ROWS[6]])
    with refused():
        import_table(sqlite_store, COLUMNS, find_data(tmp_path / "saved"), "table")


def test_damaged_folders_are_told(sqlite_store, tmp_path):
    save(tmp_path / "saved")
    victim = tmp_path / "saved" / "data-00001-of-00003.arrow"
    victim.write_bytes(victim.read_bytes()[:-200])
    with refused():
        import_table(sqlite_store, COLUMNS, find_data(tmp_path / "saved"), "table")
    victim.unlink()
    with refused():
        find_data(tmp_path / "saved")
    assert list_datasets(sqlite_store) == []


def put(folder, *names):
    """A new folder in one, with a row in each of these files that is about the number of the file."""
    folder /= str(len(list(folder.iterdir())))
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        row = {"question": f"{number} + 1?", "solution": "A sum.\n\nSo 3."}
        (folder / name).write_text(f"{json.dumps(row)}\n")
    return folder


@each(
    "names",
    [
        ["data/train-00000-of-00003.jsonl", "data/train-00002-of-00003.jsonl"],
        ["00000-of-00002.jsonl"],
        ["a_2_of_3.jsonl", "a_3_of_3.jsonl"],
        ["train-00000-of-00004-0123456789abcdef.json"],
        ["train-00000-of-00002.jsonl", "train-00001-of-00003.jsonl"],
        ["train-00000-of-00001.jsonl", "train-00000-of-00001-0123456789abcdef.jsonl"],
        ["train-00000-of-00002.jsonl", "train-00001-of-00002.jsonl", "train-00002-of-00002.jsonl"],
    ],
)
def test_numbered_files_that_are_not_one_whole_set_are_refused(tmp_path, names):
    with refused():
        find_data(put(tmp_path, *names))


@each(
    "names",
    [
        ["00000-of-00002.jsonl", "00001-of-00002.jsonl"],
        ["a/train-1-of-2.jsonl", "a/train-2-of-2.jsonl"],
        ["train-00000-of-00002-0123456789abcdef.jsonl", "train-00001-of-00002-fedcba9876543210.jsonl"],
        ["part-00000-0a1b-c000.json", "part-00007-0a1b-c000.json", "_SUCCESS"],
        ["lang=en/a.jsonl", "lang=de/b.jsonl", "README.md", "LICENSE", "_metadata", ".git/config"],
    ],
)
def test_what_belongs_together_is_one_part(sqlite_store, tmp_path, names):
    columns = ColumnMap("question", "solution")
    folder = put(tmp_path, *names)
    summary = import_table(sqlite_store, columns, find_data(folder), folder.name)
    assert (summary.added, summary.notes) == (2, ())


def test_folders_named_by_values_are_columns(sqlite_store, tmp_path):
    names = ["split=train/level=3%2F4/a.jsonl", "split=test/level=__HIVE_DEFAULT_PARTITION__/a.jsonl"]
    traces = stored(sqlite_store, put(tmp_path, *names), ColumnMap("question", "solution"))
    assert [trace.meta for trace in traces] == [
        {"split": "test", "level": None},
        {"split": "train", "level": "3/4"},
    ]


def test_what_a_folder_says_of_itself_is_noted(sqlite_store, tmp_path):
    folder = put(
        tmp_path, "data/train.jsonl", "pens.xlsx", "old/a.bak", ".hidden", "NOTICE.txt", "data/croissant.json"
    )
    columns = ColumnMap("question", "solution")

    def notes(card: str = "", data: str = "data") -> tuple[str, ...]:
        (folder / "README.md").write_text(card)
        (folder / "data").rename(folder / data)
        found = import_table(sqlite_store, columns, find_data(folder), "table").notes
        (folder / data).rename(folder / "data")
        return found

    unread = "Not read: old/a.bak, pens.xlsx."
    card = "---\ndataset_info:{}splits:\n  - name: train\n    num_examples: {}\n---\nOf sums.\n"
    wrong = "README.md says that there are 9 rows; 1 are there."
    assert notes() == notes("---\n[\n---\n") == notes(card.format("\n  ", 1)) == (unread,)
    assert notes(card.format("\n  ", 9)) == notes(card.format("\n- config_name: main\n  ", 9)) == (unread, wrong)
    two = card.format("\n- config_name: a\n  ", 9).replace("---\nOf", "- config_name: b\n  splits: []\n---\nOf")
    assert notes(two) == (unread, wrong)
    both = two.replace("splits: []", "splits: [{name: train, num_examples: 1}]")
    assert [notes(both, data) for data in ("data", "a", "b")] == [(unread,), (unread, wrong), (unread,)]
    (folder / "data" / "train.jsonl").rename(folder / "data" / "part-00000.json")
    assert notes()[1:] == ("There is no _SUCCESS: the job that wrote these files may not have ended.",)


@each(
    "names",
    [
        ["a.jsonl", "_delta_log/0.json"],
        ["x/a.jsonl", "x/.hoodie/a"],
        ["part-00000.json", "_temporary/0/a"],
        ["a.xlsx", "a.txt"],
    ],
)
def test_a_folder_whose_files_are_not_all_that_counts_is_refused(tmp_path, names):
    with refused():
        find_data(put(tmp_path, *names))


STEPS = {"prompt": "2 + 3?", "completions": ["2 + 3 = 5.", "So 5."]}
POOL = {"problem": {"question": "2 + 3?"}, "steps": [{"text": "So 5."}]}
CHAT = [{"role": "user", "content": "2 + 3?"}, {"role": "assistant", "content": "<think>It is 5."}]


def sharded(folder, *rows):
    """A folder with each row in a numbered file of its own."""
    folder.mkdir(exist_ok=True)
    for number, row in enumerate(rows):
        write_lines(folder / f"rows-{number:05d}-of-{len(rows):05d}.jsonl", [row])
    return find_data(folder)


def test_rows_of_several_files_are_divided_counted_and_checked_as_the_kind_says(sqlite_store, tmp_path):
    pools = [{"problem_id": id, "candidates": [POOL, POOL]} for id in "ab"]
    for kind, rows, count, notes in (("strict-prmbench", pools, 4, 0), ("chat", [{"messages": CHAT}] * 2, 1, 1)):
        summary = import_table(sqlite_store, find_kind(kind), sharded(tmp_path / kind, *rows), kind)
        assert (summary.added, len(summary.notes)) == (count, notes)
    shares = sharded(tmp_path / "shares", *(STEPS | {"labels": labels} for labels in ([1, 0], [0.5, 1])))
    with refused():
        import_table(sqlite_store, find_kind("stepwise"), shares, "shares")


REPO = "some/steps"
HUB_COLUMNS = ColumnMap("problem", "steps")


@pytest.fixture
def hub(tmp_path, monkeypatch):
    folder = tmp_path / "served"
    for part, count in (("train", 3), ("test", 1)):
        rows = [json.dumps({"problem": f"{part} {n}", "steps": ["One.", "Two."]}) for n in range(count)]
        path = folder / "data" / f"{part}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(rows) + "\n")
    (folder / "README.md").write_text("# Steps\n")
    with Hub().running() as one:
        one.folders[f"datasets:{REPO}"] = folder
        one.tags.add("v1")
        point_to(monkeypatch, one.url, tmp_path / "hub")
        yield one


def test_a_part_of_a_dataset_comes_at_a_commit_and_once(sqlite_store, hub):
    for _ in range(2):
        import_table(sqlite_store, HUB_COLUMNS, fetch_data(REPO, "v1", "train"), "steps")
    dataset = find_dataset(sqlite_store, "steps")
    assert (dataset.traces, dataset.source) == (3, f"{REPO}@{COMMIT}")
    # Neither the other part nor the card; the second time it is in the cache.
    assert [path for method, path, *_ in hub.asked if method == "GET" and "/resolve/" in path] == [
        f"/datasets/{REPO}/resolve/{COMMIT}/data/train.jsonl"
    ]


def test_a_dataset_that_the_hub_does_not_have_is_named(hub, monkeypatch):
    with refused():
        fetch_data(REPO)
    with refused():
        fetch_data(REPO, "", "dev")
    with refused():
        fetch_data(REPO, "v2")
    with refused():
        fetch_data("some/thing")
    monkeypatch.setattr(hub_cache, "free_disk", lambda: 200_000_000)
    with refused():
        fetch_data(REPO, "", "train")


def test_a_hub_that_is_not_there_and_a_gated_dataset_are_told(hub, monkeypatch):
    hub.gated.add(f"datasets:{REPO}")
    with refused():
        fetch_data(REPO, "", "train")
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with refused():
        fetch_data(REPO)
