"""Logs of the server and its worker on standard error, as lines for people or as one JSON object per line.

Logs never contain the text of a trace, a password or a token. Because an exception's message may quote its input,
only the exception's type and traceback locations are logged, and the operating system's reason if there is one.

Repeated warnings and errors are counted, so that whoever can cause one cannot fill the disk.
"""

import json
import logging
import os
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Hashable, Iterator
from datetime import UTC, datetime
from threading import Timer
from typing import Any

from stepsight.app.web.access import request_id

FORMATS = TEXT, JSON = "text", "json"
ACCESS = logging.getLogger("stepsight.access")
FIELDS = "fields"
"""The attribute of a record with further fields, by name: `extra={FIELDS: {...}}`."""

_LOG = logging.getLogger("stepsight")
# The most causes of an exception or members of a group that are logged, and the most frames of each, from the last.
_MOST_CAUSES = 8
_MOST_PLACES = 12
# The number of identical warnings or errors written per minute; further ones are only counted.
_MOST_EQUAL = 10
_MINUTE = 60.0


def set_up_logs(format: str, *, access: bool = False) -> None:
    """Set up logging for this process in the given format. With `access`, requests are logged too."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Json() if format == JSON else _Text())
    handler.addFilter(_Repeats(handler).filter)
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    _LOG.setLevel(logging.INFO)
    ACCESS.setLevel(logging.INFO if access else logging.CRITICAL)
    if format == JSON:
        # Uvicorn's own access log is replaced.
        os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    warnings.showwarning = _show_warning
    threading.excepthook = _show_exception


class _Repeats:
    """A filter that counts warnings and errors which were written often within a minute, and writes the count once
    the minute is over. Errors are equal if they have the same exception from the same place."""

    def __init__(self, handler: logging.Handler) -> None:
        self._handler = handler
        self._lock = threading.Lock()
        self._counts: Counter[Hashable] = Counter()
        self._held_back: dict[Hashable, logging.LogRecord] = {}
        self._began = time.monotonic()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        key = _key(record)
        with self._lock:
            if not self._held_back and time.monotonic() - self._began > _MINUTE:
                self._begin()
            self._counts[key] += 1
            if self._counts[key] <= _MOST_EQUAL:
                return True
            if not self._held_back:
                timer = Timer(_MINUTE, self._write)
                timer.daemon = True
                timer.start()
            self._held_back[key] = record
            return False

    def _begin(self) -> None:
        self._counts.clear()
        self._held_back.clear()
        self._began = time.monotonic()

    def _write(self) -> None:
        """Write how many messages were held back, and begin a new minute."""
        with self._lock:
            counted = [(record, self._counts[key] - _MOST_EQUAL) for key, record in self._held_back.items()]
            self._begin()
        for record, count in counted:
            more = {"name": record.name, "levelno": record.levelno, "levelname": record.levelname}
            more["msg"] = f"{_message(record)} ({count:,} more within a minute)"
            self._handler.handle(logging.makeLogRecord(more))


def _key(record: logging.LogRecord) -> Hashable:
    """Return a key that is equal for equal records."""
    error = record.exc_info[1] if record.exc_info else None
    if error is None:
        return record.name, record.levelno, _message(record)
    *_, place = [None, *traceback.walk_tb(error.__traceback__)]
    where = place and (place[0].f_code.co_filename, place[1])
    return record.name, record.levelno, str(record.msg).partition("\n")[0], type(error), where


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        request = f" [{request_id()}]" if request_id() else ""
        lines = [f"stepsight: {_message(record)}{request}"]
        for error in _errors(record):
            reason = f": {error['reason']}" if "reason" in error else ""
            lines += [f"  {error['type']}{reason}", *(f"    {place}" for place in error["at"])]
        return "\n".join(lines)


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
        }
        if request_id():
            line["request"] = request_id()
        line |= getattr(record, FIELDS, {})
        if errors := list(_errors(record)):
            line["errors"] = errors
        return json.dumps(line)


def _message(record: logging.LogRecord) -> str:
    message = record.getMessage().strip()
    # The rest of the message contains the exception.
    return message.partition("\n")[0] if record.name == "asyncio" else message


def _errors(record: logging.LogRecord) -> Iterator[dict[str, Any]]:
    """Yield a description of a log record's exception and of each of its causes. A description consists of the
    exception's `type`, its traceback locations `at`, and the operating system's `reason` if there is one."""
    waiting = [record.exc_info[1]] if record.exc_info else []
    for _ in range(_MOST_CAUSES):
        error = waiting.pop(0) if waiting else None
        if error is None:
            return
        frames = traceback.extract_tb(error.__traceback__)[-_MOST_PLACES:]
        described: dict[str, Any] = {
            "type": f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.")
        }
        if isinstance(error, OSError) and error.strerror:
            described["reason"] = error.strerror
        yield described | {"at": [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in frames]}
        cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        waiting += [*getattr(error, "exceptions", ()), *([cause] if cause is not None else [])]


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    _LOG.warning("%s at %s:%d", category.__name__, filename, lineno)


def _show_exception(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None and args.exc_type is not SystemExit:
        _LOG.error("a thread failed", exc_info=args.exc_value)
