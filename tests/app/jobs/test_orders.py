import threading
import time

from stepsight.app.jobs.orders import Orders


def test_an_idle_worker_is_woken_and_learns_whether_to_stop():
    orders = Orders()
    looks = orders.looks
    threading.Timer(0.05, orders.look).start()
    began = time.monotonic()
    assert not orders.wait(60, looks)
    # What was ordered before the rest began counts too.
    assert not orders.wait(60, looks)
    threading.Timer(0.05, orders.stop).start()
    assert orders.wait(60, orders.looks)
    assert orders.is_stopping
    assert time.monotonic() - began < 30


def test_a_worker_waiting_for_a_database_is_not_woken_to_look():
    orders = Orders()
    orders.look()
    began = time.monotonic()
    assert not orders.wait(0.2)
    assert time.monotonic() - began >= 0.2
