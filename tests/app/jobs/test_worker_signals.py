import threading
import time

from stepsight.app.jobs.worker_signals import WorkerSignals


def test_an_idle_worker_is_woken_and_learns_whether_to_stop():
    signals = WorkerSignals()
    looks = signals.looks
    threading.Timer(0.05, signals.look).start()
    began = time.monotonic()
    assert not signals.wait(60, looks)
    # What was ordered before the rest began counts too.
    assert not signals.wait(60, looks)
    threading.Timer(0.05, signals.stop).start()
    assert signals.wait(60, signals.looks)
    assert signals.is_stopping
    assert time.monotonic() - began < 30


def test_a_worker_waiting_for_a_database_is_not_woken_to_look():
    signals = WorkerSignals()
    signals.look()
    began = time.monotonic()
    assert not signals.wait(0.2)
    assert time.monotonic() - began >= 0.2
