"""A short form of `python -m tests.bench.kills`: processes of every kind are killed while people label."""

import pytest

from tests.bench.kills import KINDS, run

pytestmark = pytest.mark.slow


def test_a_killed_process_loses_and_doubles_nothing(address, tmp_path):
    killing = run(address, tmp_path, kills=len(KINDS), people=3, traces=300)
    assert {kind: killing.tallies[kind].kills for kind in KINDS} == dict.fromkeys(KINDS, 1)
    assert {kind: tally for kind, tally in killing.tallies.items() if not tally.is_sound} == {}
    # Those that were let go on, to learn how long they take, ended well.
    assert all(tally.acknowledged for tally in killing.tallies.values()), killing.tallies
    assert killing.whole_backups > 0
