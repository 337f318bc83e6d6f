"""Renaming and deleting datasets and the scores on them."""

import logging
from threading import Barrier, Thread

from stepsight.core.judgment import Mode
from stepsight.storage.backup import count_rows
from stepsight.storage.browse.browse import browse
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.changes import ChangeableDataset, ChangeableScores, scores_were_deleted
from stepsight.storage.database.store import NotFoundError
from stepsight.storage.jobs.imports import BenchmarkImport, import_benchmark
from stepsight.storage.jobs.jobs import cancel_job, start_job
from stepsight.storage.judgments.evaluators import evaluators_of, read_versions
from stepsight.storage.judgments.judgments import read_judgments, save_judgments
from stepsight.storage.judgments.score_files import import_scores
from stepsight.storage.labelling.campaigns import close_campaign, create_campaign
from stepsight.storage.labelling.disputes import open_dispute
from stepsight.storage.labelling.plan import CampaignPlan
from stepsight.storage.people.users import local_user
from stepsight.storage.traces.queries import find_dataset, get_trace, iterate_traces, list_datasets
from tests.messages import refused
from tests.storage.labelling.samples import campaign, person
from tests.storage.samples import add, evaluator, find_evaluator, judge, many, write_lines

LEFT_OUT = {"id": "error", "left_out": 1, "whole": [0.9, 0.8, 0.7], "scores": [0.2, 0.6]}


def judged(store, folder):
    """A dataset with everything that may be deleted with it, and another one; returns the id of the first."""
    traces = add(store)
    add(store, many(3), "others")
    mini = evaluator(store)
    save_judgments(store, mini.id, [judge(trace, Mode.HINDSIGHT) for trace in traces])
    import_scores(store, "sums", write_lines(folder / "scores.jsonl", [LEFT_OUT]), "prm")
    dataset_id = traces[0].dataset_id
    job = start_job(store, dataset_id, evaluator="mini", spec="mini", fingerprint="f", mode="online")
    cancel_job(store, job.id)
    return dataset_id


def test_a_dataset_is_deleted_with_what_hangs_on_it_and_that_is_logged(store, tmp_path, caplog):
    add(store, many(3), "others")
    evaluator(store)
    with store.read() as session:
        before = count_rows(session)
    judged(store, tmp_path)
    first, *_ = iterate_traces(store, find_dataset(store, "sums").id)
    hanging = ChangeableDataset("sums").read(store)
    assert hanging.lines == (
        "4 traces",
        "5 judgments by 2 evaluators: mini, prm",
        "the scores of 1 trace without each of their steps",
        "1 job that ended",
    )
    assert ChangeableDataset("others").read(store).lines == ("3 traces",)
    with caplog.at_level(logging.INFO, "stepsight"):
        assert ChangeableDataset("sums").delete(store, person(store, "boss")) == hanging
    assert [one.name for one in list_datasets(store)] == ["others"]
    with refused():
        get_trace(store, first.trace_id)
    add(store, many(1), "sums")
    assert [(one.name, one.traces) for one in list_datasets(store)] == [("others", 3), ("sums", 1)]
    with store.read() as session:
        after = count_rows(session)
    new = {"deleted": 1, "datasets": 1, "traces": 1, "steps": 1, "substeps": 1, "evaluators": 1, "users": 1}
    assert after == {name: count + new.get(name, 0) for name, count in before.items()}
    assert caplog.messages == [f"boss deleted: dataset sums ({'; '.join(hanging.lines)})"]


def test_a_dataset_that_is_deleted_twice_is_gone_the_second_time(store):
    add(store)
    ChangeableDataset("sums").delete(store)
    with refused():
        ChangeableDataset("sums").delete(store)


def test_of_two_people_who_delete_a_dataset_at_once_one_does(store):
    add(store)
    user, both, found = local_user(store), Barrier(2), []

    def delete() -> None:
        both.wait()
        try:
            found.append(ChangeableDataset("sums").delete(store, user).name)
        except NotFoundError as error:
            found.append(type(error).__name__)

    threads = [Thread(target=delete) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == ["NotFoundError", "sums"]


def test_a_dataset_on_which_a_job_works_is_neither_deleted_nor_renamed(store):
    dataset_id = add(store)[0].dataset_id
    start_job(store, dataset_id, evaluator="mini", spec="mini", fingerprint="f", mode="online")
    with refused():
        ChangeableDataset("sums").delete(store)
    with refused():
        ChangeableDataset("sums").rename(store, "new")


def test_a_dataset_that_is_being_fetched_again_is_not_deleted(store):
    add(store, dataset="mr-math-invalid")
    import_benchmark(store, BenchmarkImport("mr-math-invalid"))
    with refused():
        ChangeableDataset("mr-math-invalid").delete(store)


def test_a_dataset_that_people_labelled_is_not_deleted(store):
    trace = add(store)[0]
    open_dispute(store, trace.trace_id, 0, "neg", "It is wrong.", local_user(store))
    with refused():
        ChangeableDataset("sums").delete(store)
    create_campaign(
        store, CampaignPlan(name="first", dataset="sums", guideline="Say what is right."), local_user(store)
    )
    with refused():
        ChangeableDataset("sums").delete(store)
    assert find_dataset(store, "sums").traces == 4


def test_a_dataset_whose_gold_another_one_s_campaign_uses_is_not_deleted(store):
    add(store)
    add(store, many(3), "others")
    plan = CampaignPlan(
        name="first", dataset="others", guideline="Say what is right.", gold_rate=0.5, gold_dataset="sums"
    )
    create_campaign(store, plan, local_user(store))
    with refused():
        ChangeableDataset("sums").delete(store)


def test_a_renamed_dataset_keeps_its_judgments(store, tmp_path):
    dataset_id = judged(store, tmp_path)
    ChangeableDataset("sums").rename(store, "additions")
    assert find_dataset(store, "additions").id == dataset_id
    assert "5 judgments by 2 evaluators: mini, prm" in ChangeableDataset("additions").read(store).lines


def test_a_dataset_is_not_renamed_to_a_name_that_is_taken_or_empty(store):
    add(store)
    add(store, many(1), "others")
    with refused():
        ChangeableDataset("sums").rename(store, "others")
    with refused():
        ChangeableDataset("sums").rename(store, "")
    ChangeableDataset("sums").rename(store, "sums")
    assert [one.name for one in list_datasets(store)] == ["others", "sums"]


def test_judgments_of_traces_that_were_deleted_meanwhile_are_refused(store):
    traces, mini = add(store), evaluator(store)
    ChangeableDataset("sums").delete(store)
    with refused():
        save_judgments(store, mini.id, [judge(traces[0], Mode.ONLINE)])


def test_ids_of_a_deleted_dataset_are_never_those_of_another(store):
    before = add(store)
    ChangeableDataset("sums").delete(store)
    after = add(store)
    assert after[0].dataset_id > before[0].dataset_id
    assert after[0].trace_id > before[-1].trace_id


def test_scores_are_deleted_with_those_without_a_step_and_others_stay(store, tmp_path):
    traces, mini = add(store), evaluator(store)
    save_judgments(store, mini.id, [judge(trace, Mode.HINDSIGHT) for trace in traces])
    with store.read() as session:
        before = count_rows(session)
    import_scores(store, "sums", write_lines(tmp_path / "scores.jsonl", [LEFT_OUT]), "prm")
    scores = ChangeableScores("sums", 0, "prm")
    lines = ("1 judgment, offline", "the scores of 1 trace without each of their steps")
    assert (scores.read(store).name, scores.read(store).lines) == ("prm on sums", lines)
    scores.delete(store)
    with store.read() as session:
        assert count_rows(session) == before | {"evaluators": 2, "deleted": 1}
    assert [one.name for one in evaluators_of(store, traces[0].dataset_id)] == ["mini"]
    assert scores_were_deleted(store, "prm", "sums")
    assert not scores_were_deleted(store, "mini", "sums")
    with refused():
        scores.delete(store)


def test_a_corrected_file_replaces_deleted_scores_whatever_the_dataset_is_called(store, tmp_path):
    traces = add(store)

    def put(dataset: str, validity: float) -> None:
        rows = [{"id": trace.id, "scores": [validity] * len(trace.substeps)} for trace in traces]
        import_scores(store, dataset, write_lines(tmp_path / "scores.jsonl", rows), "prm")

    put("sums", 0.25)
    ChangeableScores("sums", 0, "prm").delete(store)
    # A part of the corrected ones first.
    import_scores(store, "sums", write_lines(tmp_path / "part.jsonl", [LEFT_OUT]), "prm")
    put("sums", 0.5)
    ChangeableDataset("sums").rename(store, "renamed")
    # The same file changes nothing, and another one is still refused.
    put("renamed", 0.5)
    with refused():
        put("renamed", 0.75)
    add(store, dataset="sums")
    put("sums", 0.75)
    ChangeableDataset("sums").delete(store)
    add(store, dataset="sums")
    put("sums", 0.25)
    assert {float(one.offline.validity.min()) for trace in traces for one in read_judgments(store, trace)} == {0.5}


def test_caches_tell_scores_from_those_that_were_deleted(store):
    traces, mini = add(store), evaluator(store)
    dataset_id = traces[0].dataset_id
    wrong = TraceFilter(evaluator=mini.id, mode="online", verdict="invalid")

    def judge_all(seed: int) -> tuple[object, list[int]]:
        save_judgments(store, mini.id, [judge(trace, Mode.ONLINE, seed) for trace in traces])
        with store.read() as session:
            versions = read_versions(session, dataset_id)
        return versions, [row.position for row in browse(store, dataset_id, wrong).rows]

    seen = []
    for seed in (0, 3):
        seen.append(judge_all(seed))
        ChangeableScores("sums", mini.id).delete(store)
        assert browse(store, dataset_id, wrong).rows == []
    assert seen[0][0] != seen[1][0]
    assert seen[0][1] != seen[1][1]


def test_scores_that_a_job_is_giving_or_a_campaign_shows_are_not_deleted(store):
    traces, mini = add(store), evaluator(store)
    save_judgments(store, mini.id, [judge(trace, Mode.ONLINE) for trace in traces])
    scores = ChangeableScores("sums", mini.id)
    made = campaign(store, None, shows="scores", evaluator=mini.id)
    with refused():
        scores.delete(store)
    close_campaign(store, made.id)
    about = {"evaluator": "mini", "spec": "mini", "mode": "offline"}
    start_job(store, traces[0].dataset_id, fingerprint="of another", **about)
    assert scores.read(store).obstacle is None
    job = start_job(store, traces[0].dataset_id, fingerprint=find_evaluator(store, "of mini").fingerprint, **about)
    with refused():
        scores.delete(store)
    cancel_job(store, job.id)
    scores.delete(store)
