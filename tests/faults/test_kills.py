"""A short form of `python -m tests.bench.kills`: processes of every kind are killed while people label."""

import pytest

from tests.bench.kills import KINDS, run

pytestmark = pytest.mark.slow


def test_a_killed_process_loses_and_doubles_nothing(tmp_path):
    killing = run(tmp_path / "store.db", tmp_path, kills=4, people=3, traces=500)
    assert {kind: killing.tallies[kind].kills for kind in KINDS} == dict.fromkeys(KINDS, 1)
    assert all(tally.is_sound for tally in killing.tallies.values()), killing.tallies
    assert killing.tallies["labels"].acknowledged > 0
    assert killing.tallies["imports"].acknowledged > 0
    assert killing.tallies["jobs"].acknowledged > 0
    # The one that was let go on, to learn how long it takes.
    assert killing.whole_backups > 0
