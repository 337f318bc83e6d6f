"""Every reader of files, given files that somebody damaged: each answers with what it read or with a `UserError`
that a person can act on, never with anything else, and stores nothing of a file that it refuses.

Without SEED the same few inputs of each are tried every time; `make nightly` tries more, each time others.
"""

import itertools
import json
import random
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
import yaml

from stepsight.core.errors import UserError
from stepsight.core.files.label_patch import LabelChange, Patch, format_patch, read_patch
from stepsight.core.judgment_record import judgment_record
from stepsight.core.paths import asset
from stepsight.storage.backup import check_backup, count_rows, make_backup
from stepsight.storage.database.store import open_store
from stepsight.storage.importers import KINDS
from stepsight.storage.importers.column_mapping import ColumnMap
from stepsight.storage.importers.data_files import find_data
from stepsight.storage.judgments.score_files import import_scores
from stepsight.storage.labelling.files.import_labels import import_labels
from stepsight.storage.labelling.files.label_formats import export_labels
from stepsight.storage.people.users import local_user
from stepsight.storage.traces.imports import import_file, import_table
from stepsight.training.experiments.finetuning.math500 import read_result
from stepsight.training.experiments.finetuning.recipe import read_recipe
from stepsight.training.experiments.finetuning.report import read_printed
from stepsight.training.experiments.finetuning.study import read_study
from stepsight.training.experiments.grid.design import read_design
from stepsight.training.experiments.grid.results import read_results
from stepsight.training.train.config import read_config
from tests.conftest import ROOT
from tests.core.test_judgment_record import KINDS as JUDGMENTS
from tests.core.test_judgment_record import TRACE as JUDGED
from tests.core.test_judgment_record import described
from tests.fuzz.attack import attack
from tests.fuzz.mutations import changed_json, changed_lines, damaged
from tests.storage.importers.test_chat import HEADER, SAMPLE
from tests.storage.labelling.labelled_sums import TRACES, labelled
from tests.storage.samples import add, plain_row

CONFIGS = ROOT / "training" / "configs"


def changed_yaml(data, rng):
    text = json.dumps(yaml.safe_load(data))
    return changed_json(text.encode(), rng)


CONFIGURATIONS = {
    "configuration": ("mini-bidir.yaml", read_config),
    "extended": ("llada-prm-8b-bs64-held-out.yaml", read_config),
    "grid": ("grid-mini-as-labelled.yaml", read_design),
    "study": ("filter-mini.yaml", read_study),
    "recipe": ("mistral-7b-sft.yaml", read_recipe),
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_configurations(name, tmp_path):
    file, read = CONFIGURATIONS[name]
    for path in CONFIGS.glob("*.yaml"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    attack(name, (CONFIGS / file).read_bytes(), tmp_path / "it.yaml", read, damaged, changed_yaml)


def test_results_of_grids(tmp_path):
    whole = json.loads((asset("reports") / "grid-mini" / "as-labelled.json").read_text())
    sound = json.dumps(whole | {"runs": whole["runs"][:2]}).encode()
    attack("grid results", sound, tmp_path / "results.json", read_results, damaged, changed_json)


def test_the_papers_tables(tmp_path):
    for name, read in (("full-grid-results", read_results), ("filter-ablation", read_printed)):
        sound = asset("reference", f"{name}.json").read_bytes()
        attack(name, sound, tmp_path / "it.json", read, damaged, changed_json)


def test_results_of_models(tmp_path):
    sound = next((asset("reports") / "filter-mini" / "runs").rglob("math500.json")).read_bytes()
    attack("math500", sound, tmp_path / "math500.json", read_result, damaged, changed_json)


def test_patches(tmp_path):
    moment = "2026-01-01T00:00:00+00:00"
    changes = [LabelChange("1", "0" * 64, step, "pos", "neg", "Why.", 1, "anna", moment) for step in (0, 1)]
    sound = format_patch(Patch("sums", "1" * 64, moment, tuple(changes))).encode()
    attack("patch", sound, tmp_path / "patch.json", read_patch, damaged, changed_json)


def held(store):
    with store.read() as session:
        return count_rows(session)


def unless_stored(store, read):
    """The reader, which may have stored nothing of what it refuses."""

    def checked(path: Path) -> object:
        before = held(store)
        try:
            return read(path)
        except UserError:
            assert held(store) == before
            raise

    return checked


SAMPLES = {
    "mr-math-invalid": "mr-math/mr-math_invalid_errors.json",
    "mr-math-redundant": "mr-math/mr-math_redundant_errors.json",
    "mr-gsm8k": "mr-gsm8k/MR-GSM8K_partial.json",
    "perturbation": "perturbation/perturbation.json",
    "prm800k": "prm800k/test.jsonl",
}


def beginning(path):
    """The first two rows of a file of JSON Lines, or of one array."""
    text = path.read_text(encoding="utf-8")
    rows = json.loads(text)[:2] if text.lstrip().startswith("[") else [json.loads(x) for x in text.splitlines()[:2]]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


ROWS = {
    "plain": plain_row(1),
    "inspect": {**HEADER, "samples": [SAMPLE]},
    "chat": {
        "messages": [*SAMPLE["messages"], {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}]
    },
}


@pytest.mark.parametrize("kind", [*SAMPLES, *ROWS])
def test_datasets(kind, data, sqlite_store, tmp_path):
    assert kind in KINDS
    sound = json.dumps(ROWS[kind]).encode() + b"\n" if kind in ROWS else beginning(data / SAMPLES[kind])
    read = unless_stored(sqlite_store, lambda path: import_file(sqlite_store, kind, path, f"d{random.random()}"))
    attack(kind, sound, tmp_path / "rows.jsonl", read, damaged, changed_lines)


def test_scores(data, sqlite_store, tmp_path):
    rows = tmp_path / "rows.jsonl"
    rows.write_bytes(beginning(data / SAMPLES["mr-math-invalid"]))
    import_file(sqlite_store, "mr-math-invalid", rows, "d")
    whole = (data / "mr-math" / "scores" / "invalid" / "math-shepherd_mistral-7b_eval_results.json").read_text()
    said = {str(row.get("id", row.get("uuid"))): row for row in json.loads(whole)} if whole[0] == "[" else {}
    lines = list(said.values())[:2] or [json.loads(line) for line in whole.splitlines()[:2]]
    sound = "".join(json.dumps(row) + "\n" for row in lines).encode()
    read = unless_stored(sqlite_store, lambda path: import_scores(sqlite_store, "d", path, f"e{random.random()}"))
    attack("scores", sound, tmp_path / "scores.jsonl", read, damaged, changed_lines)


def test_records(sqlite_store, tmp_path):
    add(sqlite_store, [JUDGED], "d")
    outputs, judgment = JUDGMENTS[0]
    sound = judgment_record(judgment, described(outputs)).model_dump_json().encode() + b"\n"
    read = unless_stored(sqlite_store, lambda path: import_scores(sqlite_store, "d", path, f"e{random.random()}"))
    attack("records", sound, tmp_path / "scores.jsonl", read, damaged, changed_lines)


TABLE_ROWS = [{"problem": f"{n}?", "solution": {"steps": [{"text": "One."}, {"text": "Two."}]}} for n in range(3)]
COLUMNS = ColumnMap("problem", "solution.steps.text")


@pytest.mark.parametrize("form", ["lines", "parquet", "arrow"])
def test_tables(form, sqlite_store, tmp_path):
    path, table = tmp_path / "sound", pyarrow.Table.from_pylist(TABLE_ROWS)
    if form == "lines":
        path.write_text("".join(json.dumps(row) + "\n" for row in TABLE_ROWS))
    elif form == "parquet":
        pyarrow.parquet.write_table(table, path)
    else:
        with pyarrow.ipc.new_stream(str(path), table.schema) as writer:
            writer.write_table(table)

    def read(file: Path) -> object:
        return import_table(sqlite_store, COLUMNS, find_data(file), f"d{random.random()}")

    changes = (damaged, changed_lines) if form == "lines" else (damaged,)
    attack(f"table as {form}", path.read_bytes(), tmp_path / "table", unless_stored(sqlite_store, read), *changes)


@pytest.mark.parametrize("form", ["events", "label-studio"])
def test_labels(form, sqlite_store, tmp_path):
    """Into a store that has the traces, each file as a campaign of its own."""
    path, of_tools = tmp_path / "labels", form == "label-studio"
    export_labels(sqlite_store, labelled(sqlite_store).name, path, form, per_annotator=of_tools)
    campaigns = map("again {}".format, itertools.count())
    with open_store(str(tmp_path / "other.db")) as store:
        add(store, TRACES)
        user = local_user(store)

        def read(file: Path) -> object:
            return import_labels(store, file, user, campaign=next(campaigns), dataset="sums")

        changes = (changed_json if of_tools else changed_lines, damaged)
        attack(f"labels as {form}", path.read_bytes(), tmp_path / "it", unless_stored(store, read), *changes)


def test_backups(sqlite_store, tmp_path):
    labelled(sqlite_store)
    whole = make_backup(sqlite_store, tmp_path / "whole.db").path
    attack("backup", whole.read_bytes(), tmp_path / "damaged.db", check_backup, damaged)
