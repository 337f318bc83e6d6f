"""Deleting an evaluator's scores on a dataset."""

from stepsight.core.judgment import Mode
from stepsight.storage.backup import count_rows
from stepsight.storage.browse.browse import browse
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.jobs.jobs import cancel_job, start_job
from stepsight.storage.judgments.evaluators import evaluators_of, read_versions
from stepsight.storage.judgments.judgments import read_judgments, save_judgments
from stepsight.storage.judgments.score_changes import ChangeableScores, scores_were_deleted
from stepsight.storage.judgments.score_files import import_scores
from stepsight.storage.labelling.campaigns import close_campaign
from stepsight.storage.traces.dataset_changes import ChangeableDataset
from tests.messages import refused
from tests.storage.labelling.samples import campaign
from tests.storage.samples import add, evaluator, find_evaluator, judge, write_lines

LEFT_OUT = {"id": "error", "left_out": 1, "whole": [0.9, 0.8, 0.7], "scores": [0.2, 0.6]}


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
