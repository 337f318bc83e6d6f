"""Lines of the log: what they hold, and what they leave out."""

import asyncio
import json
import logging
import os
import threading
import warnings

import pytest

from stepsight.app.web import logs
from stepsight.app.web.access import CURRENT, begin
from stepsight.app.web.logs import ACCESS, FIELDS, JSON, TEXT, set_up_logs

SECRET = "the text of a trace"
LOG = logging.getLogger("stepsight.test")


@pytest.fixture
def lines(capsys):
    """Sets logs up, runs something, and gives the lines that came of it."""

    def run(act, format=JSON, access=False):
        set_up_logs(format, access=access)
        act()
        text = capsys.readouterr().err.splitlines()
        return [json.loads(line) for line in text] if format == JSON else text

    yield run
    CURRENT.set(None)


def fail():
    try:
        try:
            int(SECRET)
        except ValueError as error:
            raise KeyError(SECRET) from error
    except KeyError:
        LOG.exception("it failed")


def test_a_record_is_an_object_in_a_line(lines):
    (line,) = lines(lambda: LOG.info("two\nlines", extra={FIELDS: {"job": 3}}))
    assert line.pop("time").endswith("+00:00")
    assert line == {"level": "info", "logger": "stepsight.test", "message": "two\nlines", "job": 3}


def test_a_line_has_the_id_of_its_request(lines):
    begin("proxy-17")
    assert lines(lambda: LOG.info("hello"))[0]["request"] == "proxy-17"
    assert lines(lambda: LOG.info("hello"), TEXT) == ["stepsight: hello [proxy-17]"]


def test_an_exception_tells_where_and_not_what(lines):
    (line,) = lines(fail)
    assert [error["type"] for error in line["errors"]] == ["KeyError", "ValueError"]
    assert line["errors"][0]["at"][0].endswith(" in fail")
    assert SECRET not in json.dumps(line)
    text = lines(fail, TEXT)
    assert text[0] == "stepsight: it failed"
    assert "  KeyError" in text
    assert "  ValueError" in text
    assert SECRET not in "\n".join(text)


def test_exceptions_of_a_group_are_told_one_by_one(lines):
    def act():
        LOG.error("both failed", exc_info=ExceptionGroup(SECRET, [ValueError(SECRET), KeyError(SECRET)]))

    (line,) = lines(act)
    assert [error["type"] for error in line["errors"]] == ["ExceptionGroup", "ValueError", "KeyError"]
    assert SECRET not in json.dumps(line)


def test_the_reason_of_a_system_error_is_logged(lines):
    def act():
        try:
            os.stat(f"/nowhere/{SECRET}")
        except OSError:
            LOG.exception("it failed")

    (line,) = lines(act)
    assert line["errors"][0]["reason"] == "No such file or directory"
    assert SECRET not in json.dumps(line)
    assert "  FileNotFoundError: No such file or directory" in lines(act, TEXT)


def test_uncaught_errors_and_warnings_are_logged(lines):
    def in_a_thread():
        thread = threading.Thread(target=int, args=(SECRET,))
        thread.start()
        thread.join()

    def in_a_task():
        async def run():
            asyncio.get_running_loop().call_exception_handler(
                {"message": f"It was never retrieved\n{SECRET}", "exception": ValueError(SECRET)}
            )

        asyncio.run(run())

    def warned():
        with warnings.catch_warnings(action="always"):
            # It would be captured here.
            warnings.showwarning(UserWarning(SECRET), UserWarning, "module.py", 7)

    for act, message in (
        (in_a_thread, "a thread failed"),
        (in_a_task, "It was never retrieved"),
        (warned, "UserWarning at module.py:7"),
    ):
        (line,) = lines(act)
        assert line["message"] == message
        assert SECRET not in json.dumps(line)


def test_requests_are_logged_where_that_is_asked_for(lines):
    assert lines(lambda: ACCESS.info("GET /"), TEXT) == []
    assert lines(lambda: ACCESS.info("GET /"), TEXT, access=True) == ["stepsight: GET /"]


def test_equal_errors_are_counted_once_they_are_many(lines, monkeypatch):
    minutes = []
    monkeypatch.setattr(logs, "Timer", lambda _, over: minutes.append(over) or threading.Timer(0, print))

    def act():
        for _ in range(300):
            fail()
        LOG.warning("another")
        minutes[0]()
        fail()

    text = [line for line in lines(act, TEXT) if line.startswith("stepsight")]
    more = "stepsight: it failed (290 more within a minute)"
    assert text == [*["stepsight: it failed"] * 10, "stepsight: another", more, "stepsight: it failed"]
    assert len(minutes) == 1
