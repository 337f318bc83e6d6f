"""`stepsight agreement` as it is typed."""

import json

import pytest

from stepsight.core.metrics.agreement import ALL_SAME
from tests.app.annotate.test_agreement import labelled
from tests.storage.labelling.samples import THREE, TWO, campaign


@pytest.fixture
def db(sqlite_store):
    """A store with the campaigns `first` and `again`, whose two traces three people have labelled."""
    labelled(sqlite_store, campaign(sqlite_store, (TWO, THREE), overlap=3))
    labelled(sqlite_store, campaign(sqlite_store, None, name="again", overlap=3))
    return sqlite_store.name


def test_every_table_is_printed(command, db):
    code, out, err = command("agreement", "first", "--db", db, "--draws", 50)
    assert (code, err) == (0, "")
    assert out.startswith("first: 6 annotations; 2 traces and 0 hidden gold items\n")
    lines = out.splitlines()
    # As in the test of the page: 1 - 14 * 6 / 94 of 15 labels, of which 9 of 15 pairs agree.
    row = next(line for line in lines if line.startswith("labels  "))
    assert row.split()[1] == "0.106"
    assert "60.0 [" in row
    for title in ("Every two people", "Each person", "Against the benchmark's gold", "By step number"):
        assert any(line.startswith(title) for line in lines)


def test_json_has_every_number(command, db):
    code, out, _ = command("agreement", "first", "--against", "again", "--db", db, "--draws", 50, "--json")
    assert code == 0
    found = json.loads(out)
    assert (found["campaign"], found["against"], found["answers"], found["traces"]) == ("first", "again", 6, 2)
    labels = next(row for row in found["tables"]["agreement"] if row["of"] == "labels")
    assert labels["alpha"]["value"] == pytest.approx(1 - 14 * 6 / 94)
    assert labels["alpha"]["low"] <= labels["alpha"]["value"] <= labels["alpha"]["high"]
    assert (labels["units"], labels["unit"], labels["pairs"]) == (5, "steps", 15)
    # Step 3 is pos to everybody.
    third = found["tables"]["positions"][2]
    assert third["ordinal"] == {"value": None, "low": None, "high": None, "reason": ALL_SAME}
    assert third["agreeing"]["value"] == 1
    # Everybody says the same in both campaigns.
    assert found["tables"]["majorities"][-1]["changed"]["value"] == 0
