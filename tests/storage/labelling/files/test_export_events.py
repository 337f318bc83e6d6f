import json

from stepsight.storage.database.labelling_schema import CampaignRow, SlotRow
from stepsight.storage.database.schema import EvaluatorRow
from stepsight.storage.labelling.files.export_events import (
    EVALUATOR,
    EVENT,
    SLOT,
    write_events,
)
from stepsight.storage.labelling.files.rows import CampaignLine, EventLine
from tests.storage.labelling.labelled_sums import labelled


def test_the_log_holds_every_column():
    """Numbers of the database are told by name, place or key instead, and some columns hold for a store alone."""
    kept = {
        CampaignRow: {
            *CampaignLine.model_fields,
            "settings",
            "id",
            "dataset_id",
            "evaluator_id",
            "blind",
            "exported",
        },
        SlotRow: {*SLOT, "id", "public_id", "campaign_id", "item_id", "user_id"},
        EvaluatorRow: {*EVALUATOR, "id", "created"},
    }
    for model, names in kept.items():
        assert {column.name for column in model.__table__.columns} <= names
    assert EventLine.model_fields.keys() - {"kind", "item", "slot", "annotator", "of"} == {*EVENT}


def test_a_log_is_a_campaign_its_guidelines_its_traces_and_its_events(store, tmp_path):
    made = labelled(store)
    count = write_events(store, made, tmp_path / "log")
    rows = [json.loads(line) for line in (tmp_path / "log").read_text(encoding="utf-8").splitlines()]
    kinds = [next(key for key in ("format", "event", "item", "guideline") if key in row) for row in rows]
    assert kinds == ["format", "guideline", "item", "item", "item"] + ["event"] * count
    assert (rows[0]["campaign"]["name"], rows[0]["campaign"]["created_by"]) == ("first", "boss")
    assert [slot["annotator"] for slot in rows[2]["slots"]] == ["annotator 1", "annotator 2", "annotator 3"]
    first, undo = rows[5], next(row for row in rows if row.get("cause") == "undo")
    assert (first["event"], first["step"], first["old"], first["new"]) == ("label", 0, None, "neg")
    # The second label of step 1 is taken back.
    assert (undo["old"], undo["new"], undo["of"]) == ("pos", "neg", rows[6]["key"])
    assert [row["slot"] for row in rows if row.get("event") == "decide"] == [None, None]
