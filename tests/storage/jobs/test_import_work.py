"""Imports as jobs do them: fetched benchmarks, and files that browsers sent."""

import gzip
import hashlib
import json
import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from stepsight.core.judgment import Mode
from stepsight.core.paths import CACHE_VARIABLE
from stepsight.storage.database.jobs_schema import State, Task
from stepsight.storage.database.store import NotFoundError
from stepsight.storage.importers import catalogue
from stepsight.storage.importers.catalogue import PublicFile, find_benchmark
from stepsight.storage.importers.column_mapping import ColumnMap
from stepsight.storage.jobs.imports import (
    BenchmarkImport,
    FileImport,
    Imported,
    fetch_benchmark,
    import_benchmark,
    import_upload,
    read_request,
    run_import,
)
from stepsight.storage.jobs.jobs import list_jobs, list_requests
from stepsight.storage.jobs.preview import preview
from stepsight.storage.jobs.uploads import list_uploads
from stepsight.storage.judgments.evaluators import evaluators_of
from stepsight.storage.judgments.left_outs import iterate_left_out
from stepsight.storage.people.users import local_user
from stepsight.storage.traces.queries import find_dataset, find_trace, list_datasets
from tests.messages import refused
from tests.storage.jobs.samples import send
from tests.storage.public_server import PublicServer
from tests.storage.samples import invalid_row, plain_row
from tests.storage.strict_prmbench import publish

GOOD = [json.dumps(plain_row(number)).encode() for number in range(3)]
BAD = b'{"id": "x", "problem": "?"}'


def lines(*rows):
    return b"".join(row + b"\n" for row in rows)


def run(store, wanted, progress):
    """Carry out a request as a job keeps it."""
    return run_import(store, json.loads(json.dumps(asdict(wanted))), progress)


def add(store, upload, **asked):
    """Import a file as the preview reads it, with what is asked otherwise."""
    finding = preview(store, upload).finding
    read = {"holds": finding.holds.value, "dataset": finding.dataset, "evaluator": finding.evaluator}
    read |= {"kind": finding.kind, "columns": finding.columns}
    wanted = FileImport(upload=upload.id, sha256=upload.sha256, **(read | asked))  # type: ignore[arg-type]
    return run(store, wanted, lambda done, total: None)


def test_a_large_score_file_fits_a_dataset_by_its_first_rows(sqlite_store):
    me = local_user(sqlite_store).id
    for name, count in (("short", 3), ("long", 40)):
        add(sqlite_store, send(sqlite_store, me, lines(*map(_plain, range(count))), f"{name}.jsonl"), dataset=name)
    row = {"scores": [0.5] * 3, "about": "x" * 990_000}
    scores = lines(*(json.dumps({"id": number} | row).encode() for number in range(32)))
    shown = preview(sqlite_store, send(sqlite_store, me, scores, "scores.jsonl", 2**20))
    assert (shown.good, shown.head.count("\n") + 1, shown.finding.dataset) == (32, 5, "long")


def _plain(number):
    return json.dumps(plain_row(number)).encode()


def test_a_file_of_traces_comes_in_and_is_forgotten(store):
    me = local_user(store).id
    upload = send(store, me, lines(*GOOD), "mine.jsonl")
    seen: list[tuple[int, int]] = []
    wanted = FileImport(upload=upload.id, holds="traces", dataset="mine", kind="plain", sha256=upload.sha256)
    done = run(store, wanted, lambda *progress: seen.append(progress))
    dataset = find_dataset(store, "mine")
    assert done == Imported("mine: 3 traces added; 3 in the dataset.", dataset.id)
    assert (dataset.source, dataset.sha256) == ("mine.jsonl", upload.sha256)
    assert seen[-1] == (upload.size, upload.size)
    assert list_uploads(store, me) == []
    # A worker that ended before it could say so: the next one finds it done.
    assert run(store, wanted, lambda *progress: None).summary == "mine: stored."
    # The same file again.
    again = send(store, me, lines(*GOOD), "mine.jsonl")
    assert preview(store, again).stored == "mine"
    assert add(store, again).summary == "mine: nothing new, 3 traces already stored."


def test_a_compressed_file_comes_in_under_the_name_of_its_content(store):
    me = local_user(store).id
    upload = send(store, me, gzip.compress(lines(*GOOD)), "mine.jsonl.gz")
    assert preview(store, upload).good == 3
    assert add(store, upload).summary == "mine: 3 traces added; 3 in the dataset."
    scores = lines(*(b'{"id": "%d", "scores": [0.5, 0.5, 0.5]}' % number for number in range(3)))
    for number, content in enumerate((gzip.compress(scores), scores)):
        # The content is that of the first file, so that nothing changes.
        upload = send(store, me, content, f"scores{number}.jsonl")
        assert add(store, upload, evaluator="x").summary == "x on mine: 3 traces, matched by id."


def test_a_file_of_bad_rows_alone_is_soon_given_up(store):
    me = local_user(store).id
    upload = send(store, me, GOOD[0] + b"\n" + b"x\n" * 2000, "bad.jsonl")
    with refused():
        preview(store, upload)


def test_a_file_that_was_cut_off_stores_nothing(store):
    me = local_user(store).id
    cut = send(store, me, lines(*GOOD)[:-20], "cut.jsonl")
    with refused():
        add(store, cut)
    array = send(store, me, b"[" + GOOD[0] + b", " + GOOD[1][:-5], "cut.json")
    with refused():
        preview(store, array)
    assert list_datasets(store) == []


def test_a_table_comes_in_by_its_columns(store):
    me = local_user(store).id
    upload = send(store, me, b'Ask,Work\n"=1+1","Step 1: Add.\nStep 2: So 2."\n', "t.csv")
    shown = preview(store, upload)
    assert (shown.finding.names, shown.can_be_added) == (("Ask", "Work"), False)
    assert "Say which columns hold" in str(shown.error)
    named = preview(store, upload, columns=ColumnMap("Ask", "Work"))
    assert [step.text for step in named.traces[0].steps] == ["Add.", "So 2."]
    none = preview(store, upload, columns=ColumnMap("Ask", "Nowhere"))
    assert (none.good, none.bad, none.can_be_added) == (0, 1, False)
    assert add(store, upload, columns=ColumnMap("Ask", "Work")).summary == "t: 1 trace added; 1 in the dataset."
    assert find_dataset(store, "t").kind == "columns"


def test_scores_come_in_for_the_dataset_that_they_fit(store):
    me = local_user(store).id
    add(store, send(store, me, json.dumps(invalid_row()).encode(), "x.json"))
    row = invalid_row()
    count = sum(len(step) for step in row["model_output_step_format"])
    scores = send(
        store, me, json.dumps({"id": row["id"], "scores": [0.5] * count}).encode(), "judge_eval_results.json"
    )
    shown = preview(store, scores)
    assert (shown.finding.dataset, shown.finding.evaluator) == ("mr-math-invalid", "judge")
    assert (shown.outputs, shown.good) == ("validity", 1)
    assert add(store, scores, mode=Mode.ONLINE.value).summary.startswith("judge on mr-math-invalid: 1 trace")
    (judged,) = evaluators_of(store, find_dataset(store, "mr-math-invalid").id)
    assert judged.name == "judge"
    other = send(store, me, json.dumps({"id": "nobody", "scores": [0.5]}).encode(), "other.json")
    assert preview(store, other).finding.dataset == ""
    with refused():
        add(store, other, dataset="nowhere")


def test_a_file_that_was_changed_or_removed_meanwhile_is_not_added(store):
    me = local_user(store).id
    upload = send(store, me, lines(*GOOD))
    wanted = FileImport(upload=upload.id, holds="traces", dataset="mine", kind="plain", sha256="0" * 64)
    with refused(NotFoundError):
        run(store, wanted, lambda done, total: None)
    with refused(NotFoundError):
        import_upload(store, replace(wanted, upload=999), me)


def test_an_import_stopped_while_storing_stores_nothing(store):
    me = local_user(store).id
    upload = send(store, me, lines(*GOOD), "mine.jsonl")
    wanted = FileImport(upload=upload.id, holds="traces", dataset="mine", kind="plain", sha256=upload.sha256)
    gone_through = 0

    def stop(done: int, total: int) -> None:
        nonlocal gone_through
        gone_through += done == total
        if gone_through == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(store, wanted, stop)
    assert list_datasets(store) == []
    assert list_uploads(store, me) == [upload]


def test_the_same_request_twice_is_one_job(store):
    me = local_user(store).id
    upload = send(store, me, lines(*GOOD), "mine.jsonl")
    wanted = FileImport(upload=upload.id, holds="traces", dataset="mine", kind="plain")
    job = import_upload(store, wanted, me)
    assert import_upload(store, wanted, me).id == job.id
    fetched = import_benchmark(store, BenchmarkImport("mr-math-invalid"))
    assert fetched.id != job.id
    assert [(one.task, one.subject, one.mode) for one in list_requests(store, Task.IMPORT)] == [
        (Task.IMPORT, "mine.jsonl → mine", None),
        (Task.IMPORT, "MR-MATH, invalid steps with the scores of 12 evaluators", None),
    ]
    assert job.state == State.QUEUED
    assert read_request(job.request) == replace(wanted, sha256=upload.sha256)
    assert read_request(fetched.request) == BenchmarkImport("mr-math-invalid")
    assert list_jobs(store)[0].id == fetched.id
    with refused():
        import_benchmark(store, BenchmarkImport("odd"))


@pytest.fixture
def public(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(catalogue, "_FIRST_PAUSE", 0.01)
    with PublicServer().running() as server:
        yield server


def test_a_benchmark_is_fetched_with_its_scores_and_gone_on_with(store, public, data):
    """The real files, from a server that breaks one transfer off."""
    published = find_benchmark("mr-math-invalid")
    names = {"GPT-4": "gpt4", "ReasonEval-Mistral-7B": "reasoneval_mistral-7b"}
    folder = data / "mr-math" / "scores" / "invalid"
    public.files["/traces"] = (data / "mr-math" / "mr-math_invalid_errors.json").read_bytes()
    for name, stem in names.items():
        public.files[f"/{name}"] = (folder / f"{stem}_eval_results.json").read_bytes()
    benchmark = replace(
        published,
        file=replace(published.file, url=f"{public.url}/traces"),
        scores=tuple(
            replace(score, file=replace(score.file, url=f"{public.url}/{score.evaluator}"))
            for score in published.scores
            if score.evaluator in names
        ),
    )
    public.cut["/GPT-4"] = [5000, 0, 0, 0, 0]
    seen: list[tuple[int, int]] = []
    with refused():
        fetch_benchmark(store, benchmark, lambda *progress: seen.append(progress))
    # What was whole is stored, and is not fetched again.
    assert find_dataset(store, "mr-math-invalid").traces == 159
    done = fetch_benchmark(store, benchmark, lambda *progress: seen.append(progress))
    assert done.summary == (
        "mr-math-invalid: nothing new, 159 traces already stored. Scores of GPT-4, ReasonEval-Mistral-7B."
    )
    assert public.requests.count("/traces") == 1
    assert seen[-1] == (benchmark.whole_size,) * 2
    assert all(now <= total for now, total in seen)
    assert {one.name for one in evaluators_of(store, done.dataset_id)} == set(names)


def test_a_file_of_a_git_repository_is_checked_by_its_name_there(store, public):
    content = lines(*GOOD)
    name = hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()
    public.files["/x.jsonl"] = content
    file = PublicFile("x.jsonl", f"{public.url}/x.jsonl", git_blob=name)
    benchmark = replace(find_benchmark("prmbench"), dataset="x", kind="plain", file=file)
    assert (
        fetch_benchmark(store, benchmark, lambda done, total: None).summary
        == "x: 3 traces added; 3 in the dataset."
    )
    # What nobody here can mend is left out.
    bad = lines(*GOOD, BAD)
    public.files["/y.jsonl"] = bad
    name_of_bad = hashlib.sha1(f"blob {len(bad)}\0".encode() + bad).hexdigest()
    other = PublicFile("y.jsonl", f"{public.url}/y.jsonl", git_blob=name_of_bad)
    fetched = fetch_benchmark(store, replace(benchmark, dataset="y", file=other), lambda done, total: None)
    assert (fetched.left_out, find_dataset(store, "y").left_out) == (1, 1)
    wrong = replace(benchmark, file=replace(file, git_blob="0" * 40))
    with refused():
        fetch_benchmark(store, wrong, lambda done, total: None)
    (folder,) = Path(os.environ[CACHE_VARIABLE]).rglob("0" * 40)
    assert [path.name for path in folder.iterdir()] == [".lock"]


def test_a_benchmark_in_parts_comes_with_scores_and_those_with_a_step_left_out(store, public, data):
    benchmark = publish(data, public)
    seen: list[tuple[int, int]] = []
    done = fetch_benchmark(store, benchmark, lambda *progress: seen.append(progress))
    assert done.summary == (
        "strict-prmbench: 48 traces added; 48 in the dataset. Scores of Qwen2.5-Math-PRM-7B, Math-Shepherd,"
        " Llama3.1-8B-PRM-Deepseek-Data, Skywork-o1-Open-PRM-Qwen-2.5-7B, Skywork-o1-Open-PRM-Qwen-2.5-1.5B,"
        " internlm2-7b-reward, internlm2-1_8b-reward."
    )
    assert all(now <= total for now, total in seen)
    assert seen[-1] == (sum(map(len, public.files.values())),) * 2
    evaluators = evaluators_of(store, done.dataset_id)
    assert len(evaluators) == 7
    for evaluator in evaluators:
        found = [
            (trace.id, left_out.known) for trace, left_out in iterate_left_out(store, done.dataset_id, evaluator.id)
        ]
        assert found == [
            ("gsm8k_084/5", (1,)), ("gsm8k_084/14", (7,)), ("gsm8k_137/5", (6,)), ("gsm8k_137/9", (7,)),
            ("gsm8k_137/15", (10,)), ("gsm8k_259/9", (1,)), ("gsm8k_259/14", (1,)),
        ]  # fmt: skip
    edited = [find_trace(store, "strict-prmbench", f"gsm8k_084/{number}").meta for number in (5, 14, 15)]
    assert [(one.get("necessary"), one.get("inert")) for one in edited] == [([2], None), (None, [8]), (None, None)]
    # Everything is here already.
    asked = len(public.requests)
    again = fetch_benchmark(store, benchmark, lambda *progress: None)
    assert (again.dataset_id, len(public.requests)) == (done.dataset_id, asked)
