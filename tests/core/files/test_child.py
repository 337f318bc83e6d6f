"""The process that works on what strangers wrote: its answers, its bounds, and what is left of it."""

import os
import resource
import signal
import time
from contextlib import closing

import pytest

from stepsight.core.errors import UserError
from stepsight.core.files.child import TOO_LONG, TOO_MUCH, Bounds, Child, ChildError, Children
from tests.app.processes import family, until
from tests.core.files.worker import make_worker

SMALL = Bounds(seconds=1, memory=200_000_000)


@pytest.fixture(params=[False, True], ids=["kept", "fresh"])
def child(request):
    with closing(Child(make_worker, SMALL, fresh=request.param)) as one:
        yield one


def test_a_child_answers_and_gets_the_content_as_it_asks_for_it(child):
    assert child.ask("count", [b"ab", b"c" * 10**6]) == 10**6 + 2
    given = iter([b"one", b"two"])
    assert child.ask("first", given) == "one"
    assert list(given) == [b"two"]


def test_what_fails_says_why_and_the_next_request_is_answered(child):
    for asked, reason in (
        ("memory", TOO_MUCH),
        ("panic", "thread 'main' panicked"),
        ("compute", TOO_LONG),
        ("crash", "its reader crashes, or takes too much memory"),
        ("recurse", "it is nested too deep"),
    ):
        with pytest.raises(ChildError) as raised:
            child.ask(asked)
        assert str(raised.value) == reason
    with pytest.raises(UserError) as refusal:
        child.ask("refuse")
    assert (refusal.value.message, refusal.value.hint) == ("It is empty.", "Fill it.")
    assert child.ask("count", [b"abc"]) == 3


def test_a_process_that_was_killed_between_requests_is_replaced(child):
    child.start()
    assert child.ask("count") == 0
    os.kill(child._process.pid, signal.SIGKILL)
    child._process.wait()
    # Its pipes are closed: a warning would fail the test.
    assert child.ask("count", [b"a"]) == 1


def test_a_process_that_was_killed_while_it_started_is_replaced(child):
    child.start()
    while (first := child._process) is None:
        time.sleep(0.001)
    os.kill(first.pid, signal.SIGKILL)
    assert child.ask("count", [b"a"]) == 1
    assert child._process is not first


def test_a_request_does_not_wait_for_another():
    def while_another_is_answered():
        yield b"a"
        assert children.ask("count", [b"bc"]) == 2

    with closing(Children(make_worker, SMALL, 2)) as children:
        assert children.ask("count", while_another_is_answered()) == 1


def test_content_that_cannot_be_read_ends_the_request_and_not_the_child(child):
    def broken():
        yield b"a"
        raise KeyError("gone")

    with pytest.raises(KeyError):
        child.ask("count", broken())
    assert child.ask("count", [b"abc"]) == 3


def test_a_child_that_waits_is_ended():
    with (
        closing(Child(make_worker, Bounds(1, 200_000_000, patience=0.5))) as child,
        pytest.raises(ChildError) as raised,
    ):
        child.ask("sleep")
    assert str(raised.value) == TOO_LONG


def test_a_fresh_child_keeps_nothing_of_earlier_requests():
    with closing(Child(make_worker, SMALL, fresh=True)) as child:
        child.ask("count")
        assert child.ask("kept") == ["kept"]


def test_how_a_child_ends_does_not_depend_on_what_it_inherits(child):
    """The worker blocks SIGTERM, and whoever starts a server may ignore the end of children or of time."""
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGCHLD, signal.SIGXCPU)}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals) - {signal.SIGINT})
    try:
        assert child.ask("count") == 0
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in handlers.items():
            signal.signal(number, handler)
    for _ in range(5):
        assert child.ask("count", [b"a"]) == 1
    # Beside it, no more than the copy that waits for the next request.
    until(lambda: len(family(child._process.pid)) == 1 + child._fresh)
    with pytest.raises(ChildError) as raised:
        child.ask("compute")
    assert str(raised.value) == TOO_LONG


def test_a_child_answers_below_the_hard_limits_that_it_inherits(child):
    assert child.ask("count") == 0
    for pid in family(child._process.pid):
        resource.prlimit(pid, resource.RLIMIT_CPU, (60, 60))
    assert child.ask("count", [b"a"], Bounds(seconds=1000, memory=200_000_000)) == 1


def test_a_child_gets_what_it_needs_of_the_environment_and_no_more(monkeypatch):
    kept, withheld = ("HF_HOME", "LD_LIBRARY_PATH_X", "TMPDIR"), ("HF_TOKEN", "HTTPS_PROXY", "SSH_AUTH_SOCK")
    for name in (*kept, *withheld):
        monkeypatch.setenv(name, "/tmp")
    with closing(Child(make_worker, SMALL)) as child:
        assert child.ask("environment", [" ".join([*kept, *withheld]).encode()]) == list(kept)
