"""Logs of Inspect, `.eval` and `.json` (`stepsight import inspect`).

    header.json                   {"version": 2, "status": "success", "eval": {"task": "…", "model": "…"}}
    samples/7_epoch_1.json        {"id": 7, "epoch": 1, "input": "When was …?", "target": "1838",
                                   "messages": [{"role": "user", "content": "…"},
                                     {"role": "assistant", "content": "…", "tool_calls": [
                                        {"id": "c1", "function": "search", "arguments": {"query": "…"}}]},
                                     {"role": "tool", "tool_call_id": "c1", "function": "search", "content": "…"}],
                                   "scores": {"match": {"value": "C"}}, "metadata": {}, "attachments": {}}

An `.eval` log is a ZIP archive with a file for each sample; a `.json` log is one object with all `samples`. Both
are held in memory. The last answer of a sample is the solution, as in the kind `chat`. References to texts that
the log stores as attachments are replaced by these texts. The id is the sample's, followed by the epoch from the
second epoch on. Scores, target, task, model and the sample's own metadata are kept; its events, which repeat the
messages, are not.
"""

import re
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import chain
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.files.text_lines import ZIP, read_zip
from stepsight.core.files.whole_files import LARGEST, STRICT, parse_json
from stepsight.core.trace import Trace
from stepsight.storage.importers.chat import read_chat
from stepsight.storage.importers.rows.fields import ASIDE, check_object, describe, identifier, listed
from stepsight.storage.importers.rows.kind import FileKind, OnBad, Row, Rows, json_rows

LOG = ".eval"
"""The suffix of a log that is an archive."""

_HEADERS = ("header.json", "_journal/start.json")
_SAMPLE = re.compile(r"samples/.*\.json")
_ATTACHMENT = "attachment://"
_KEPT = ("target", "scores", "metadata", "error", "limit", "choices")


def log_rows(lines: Iterable[bytes], name: str, on_bad: OnBad | None = None) -> Rows:
    """Yield (where, row) for each sample of a log that is an archive, with the log's own facts, or for each row of
    one that is JSON. Raises `UserError` if an archive is damaged or has no sample."""
    source = iter(lines)
    first = next(source, b"")
    everything = chain([first], source)
    return (_archive_rows if first.startswith(ZIP) else json_rows)(everything, name, on_bad)


def _archive_rows(lines: Iterable[bytes], name: str, on_bad: OnBad | None = None) -> Rows:
    files = read_zip(b"".join(lines), name, LARGEST)
    samples = list(filter(_SAMPLE.fullmatch, files.names))
    if not samples:
        raise _without_samples(name)
    header = next(
        (parsed for key in _HEADERS if key in files.names and (parsed := _json(files.read(key), name))), {}
    )
    for number, member in enumerate(samples, start=1):
        sample = _json(files.read(member), f"{name} {member}")
        yield f"{name} row {number}", {"eval": header.get("eval"), "samples": [sample]}


def _samples(rows: Rows, name: str, on_bad: OnBad | None) -> Rows:
    """Yield a row for each sample of the logs among the rows, and each row that is not a log. Raises `UserError` if
    there is no sample."""
    number = 0
    for where, row in rows:
        if not isinstance(row.get("samples"), list):
            number += 1
            yield where, row
            continue
        for sample in row["samples"]:
            number += 1
            yield f"{name} row {number}", {"eval": row.get("eval"), "samples": [sample]}
    if not number:
        raise _without_samples(name)


def _without_samples(name: str) -> UserError:
    return UserError(f"{name}: the log has no sample.", "It may have been written before the first one ended.")


def read(row: Row, thoughts: str = ASIDE) -> Trace:
    """Turn a sample into a trace. Raises `UserError` if it has no answer after a question, or if a message has any
    other form."""
    sample = check_object(next(iter(listed(row, "samples")), None), "the sample")
    attached = sample.get("attachments")
    messages = _resolve_attachments(listed(sample, "messages"), attached if isinstance(attached, dict) else {})
    id, epoch = identifier(sample, "id"), sample.get("epoch", 1)
    about = row["eval"] if isinstance(row.get("eval"), dict) else {}
    meta = {key: about[key] for key in ("task", "model") if key in about}
    meta |= {key: sample[key] for key in _KEPT if sample.get(key) not in (None, {}, [])}
    return read_chat(id if epoch == 1 else f"{id}/{epoch}", messages, meta, thoughts)


def _json(content: bytes, name: str) -> dict[str, Any]:
    try:
        value = parse_json(content, decoder=STRICT)
    except ValueError as error:
        raise UserError(f"{name}: not JSON ({error}).", "Fetch the log again.") from None
    if not isinstance(value, dict):
        raise UserError(f"{name}: {describe(value)} found, expected an object.", "Fetch the log again.")
    return value


def _resolve_attachments(value: Any, texts: Mapping[str, Any]) -> Any:
    if isinstance(value, str) and value.startswith(_ATTACHMENT):
        return texts.get(value.removeprefix(_ATTACHMENT), value)
    if isinstance(value, dict):
        return {key: _resolve_attachments(item, texts) for key, item in value.items()}
    return [_resolve_attachments(item, texts) for item in value] if isinstance(value, list) else value


def _kind(thoughts: str = ASIDE) -> FileKind:
    return FileKind(
        name="inspect",
        title="logs of Inspect (.eval or .json)",
        fields=frozenset({"eval", "samples"}),
        read=partial(read, thoughts=thoughts),
        reader=log_rows,
        through=_samples,
        with_thoughts=_kind,
    )


KIND = _kind()
