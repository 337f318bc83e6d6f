"""Processes of a long command: their share of the machine, and that none is left. One that is told to end is tested
with the grid."""

import os
import signal

import torch

from stepsight.training.experiments.processes import Children, Share


def test_there_is_room_for_one_at_least():
    cores = len(os.sched_getaffinity(0))
    if not torch.cuda.device_count():
        assert Share(1, 1).room() == cores
    assert Share(1000, 1).room() == Share(1, 1000).room() == 1


def test_gpus_are_shared_out_by_place(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    share = Share(2, 3)
    assert share.room() == 2
    assert [share.environment(slot)["CUDA_VISIBLE_DEVICES"] for slot in range(3)] == ["0,1", "2,3", "0,1"]
    assert share.environment(0)["OMP_NUM_THREADS"] == "3"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6,5,7")
    assert share.environment(1)["CUDA_VISIBLE_DEVICES"] == "5,7"


def test_what_is_not_done_is_ended_and_what_was_said_is_kept(tmp_path, capfd):
    before = signal.getsignal(signal.SIGTERM)
    log = tmp_path / "logs" / "1.txt"
    with Children(Share(1, 1)) as children:
        assert children.start(["-c", "import sys; print('lost'); sys.exit('said')"], 0, None).wait(60) == 1
        done = children.start(["-c", "print('one')"], 0, log)
        assert done.wait(60) == 0
        left = children.start(["-c", "import time; time.sleep(600)"], 1, tmp_path / "2.txt")
        again = children.start(["-c", "print('two')"], 0, log)
        assert again.wait(60) == 0
        assert left.poll() is None
    assert (done.returncode, left.returncode) == (0, -signal.SIGTERM)
    assert log.read_text() == "one\ntwo\n"
    assert capfd.readouterr() == ("", "said\n")
    assert signal.getsignal(signal.SIGTERM) is before
