import io
import json

import pandas as pd
import pytest

import stepsight
from stepsight.core.files.label_patch import LabelChange, Patch, format_patch
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.labelling.files.label_formats import export_labels
from stepsight.training.report.frames import EVENTS, LABELS, RESULTS, frame_of
from tests.messages import refused
from tests.storage.labelling.samples import campaign, do, label_all, people, take
from tests.storage.samples import add, evaluator, judge, many


def test_labels_are_those_of_the_exported_file(store, tmp_path):
    first = campaign(store, overlap=2)
    ada, ben = people(store, 2)
    for person, labels in ((ada, ["pos", "neg"]), (ben, ["neu", "neg"])):
        label_all(store, take(store, first, person), person, labels)
    together = frame_of(store, labels="first")
    assert list(together) == list(LABELS)
    assert together.label.isna().tolist() == [True, False]
    assert together.how.tolist() == ["tie", "majority"]
    each = frame_of(store, labels="first", per_annotator=True)
    assert each.groupby("annotator").label.agg(list).to_dict() == {
        "annotator 1": ["pos", "neg"],
        "annotator 2": ["neu", "neg"],
    }
    assert each.submitted.dt.tz is not None
    export_labels(store, "first", tmp_path / "each.csv", "csv", per_annotator=True)
    file = pd.read_csv(tmp_path / "each.csv")
    for name in ("trace" if "trace" in file else "id", "step", "text", "label", "annotator", "seconds"):
        assert each[name].astype(object).where(each[name].notna(), None).tolist() == file[name].tolist()


def test_events_are_the_log_in_its_order(store):
    first = campaign(store)
    (ada,) = people(store, 1)
    task = take(store, first, ada)
    do(store, task.slot, ada, "label", 0, "pos")
    do(store, task.slot, ada, "label", 0, "neg")
    do(store, task.slot, ada, "flag", None, "no question")
    events = frame_of(store, events="first")
    assert list(events) == list(EVENTS)
    assert events[["trace", "annotator", "event", "step", "old", "new"]].astype(object).where(
        events.notna(), None
    ).to_numpy().tolist() == [
        ["two", "annotator 1", "label", 1, None, "pos"],
        ["two", "annotator 1", "label", 1, "pos", "neg"],
        ["two", "annotator 1", "flag", None, None, "no question"],
    ]
    assert events.moment.is_monotonic_increasing


def test_results_are_the_figures_of_evaluate(store, tmp_path):
    stored = add(store, many(30))
    save_judgments(store, evaluator(store).id, (judge(trace, "online", n) for n, trace in enumerate(stored)))
    save_judgments(store, evaluator(store, "other").id, (judge(trace, "online", 9) for trace in stored))
    results = frame_of(store, results="sums", evaluators="mini")
    assert list(results) == list(RESULTS)
    assert set(results[~results.baseline].evaluator) == {"mini"}
    assert results.baseline.any()
    (auc,) = results.query("evaluator == 'mini' and mode == 'online' and figure == 'step_auc'").itertuples()
    assert 0 <= auc.low <= auc.value <= auc.high <= 1
    # Of 30 traces of one step, ten have an error, ten have none and ten have no gold.
    assert (auc.traces, auc.steps) == (30, 20)
    # A patch that takes one of the ten errors away.
    change = LabelChange("0", stored[0].digest, 0, "neg", None)
    patch = tmp_path / "fixes.json"
    patch.write_text(format_patch(Patch("sums", "", "", (change,))))
    patched = frame_of(store, results="sums", evaluators="mini", patch=patch)
    assert set(patched.query("mode == 'online' and errors == 'invalid'").steps) == {19}
    with refused():
        frame_of(store, results="sums", evaluators=["mine"])


@pytest.mark.parametrize("what", ["labels", "events", "results"])
def test_types_survive_parquet(store, what):
    first = campaign(store)
    (ada,) = people(store, 1)
    label_all(store, take(store, first, ada), ada, ["pos", "neg"])
    frame = frame_of(store, **{what: "sums" if what == "results" else "first"})
    assert len(frame)
    file = io.BytesIO()
    frame.to_parquet(file)
    read = pd.read_parquet(file)
    assert read.dtypes.astype(str).to_dict() == frame.dtypes.astype(str).to_dict()
    assert json.loads(read.to_json(orient="records")) == json.loads(frame.to_json(orient="records"))


def test_one_thing_is_asked_for(sqlite_store):
    for names in ({}, {"labels": "a", "events": "a"}):
        with pytest.raises(TypeError, match="one of labels=CAMPAIGN, events=CAMPAIGN and results=DATASET"):
            stepsight.frame_of(sqlite_store, **names)
    with refused():
        stepsight.frame_of(sqlite_store, labels="a")
