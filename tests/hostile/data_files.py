"""Data files that want to harm their reader: small ones with huge content, damaged ones, and texts that keep a
parser busy. Each is made anew by a function, the random ones from a seed."""

import gzip
import io
import json
import zipfile
from collections.abc import Callable

import numpy as np
import pyarrow
import pyarrow.parquet

from tests.seeds import chance

SEEDS = range(10)
ROW = {"problem": "What is 2 + 3?", "steps": ["2 + 3 = 5.", "So 5."], "id": "a"}
MANY = 5_000_000
"""Far more than honest files have of whatever it counts."""

Maker = Callable[[], bytes]


def parquet(**columns):
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), file, compression="zstd")
    return file.getvalue()


def lists_of_nulls():
    ends, nulls = pyarrow.array([0, 4 * MANY], pyarrow.int32()), pyarrow.nulls(4 * MANY, pyarrow.int8())
    return parquet(problem=["What?"], steps=pyarrow.ListArray.from_arrays(ends, nulls))


def one_long_row_of_many():
    ends = np.zeros(2001, np.int32)
    ends[1001:] = 2 * MANY
    inner = pyarrow.nulls(2 * MANY, pyarrow.int8())
    return parquet(problem=["What?"] * 2000, steps=pyarrow.ListArray.from_arrays(pyarrow.array(ends), inner))


def a_long_text_in_every_row():
    places = pyarrow.array(np.zeros(5000, np.int32))
    problem = pyarrow.DictionaryArray.from_arrays(places, pyarrow.array(["x" * MANY]))
    return parquet(problem=problem, steps=[["a"]] * 5000)


def equal_rows():
    return parquet(problem=pyarrow.nulls(10 * MANY, pyarrow.int8()))


def deep_structs():
    value: object = "a"
    for _ in range(90):
        value = {"a": value}
    return parquet(problem=["What?"], steps=[value])


def many_columns():
    return parquet(**{f"c{number}": [1] for number in range(12_000)})


def damaged_parquet(seed):
    rng = chance(seed)
    content = bytearray(parquet(problem=["What?", "Why?"] * 50, steps=[["2 + 3 = 5."], ["a", "b"]] * 50))
    for _ in range(rng.randint(1, 8)):
        content[rng.randrange(4, len(content) - 8)] = rng.randrange(256)
    return bytes(content)


def damaged_gzip(seed):
    rng = chance(seed)
    content = bytearray(gzip.compress(lines(*[ROW] * 200)))
    content[rng.randrange(10, len(content))] ^= 1 << rng.randrange(8)
    return bytes(content[: rng.randrange(20, len(content))] if seed % 2 else content)


def inspect_log(samples, references, length):
    """A log of Inspect whose messages refer to one text again and again."""
    attached, messages = {"a": "x" * length}, [{"role": "user", "content": "attachment://a"}] * references
    sample = {"input": "What?", "messages": [*messages, {"role": "assistant", "content": "2 + 3 = 5."}]}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({"eval": {"task": "t", "model": "m"}}))
        for number in range(samples):
            content = {"id": number, "epoch": 1, "attachments": attached} | sample
            archive.writestr(f"samples/{number}_epoch_1.json", json.dumps(content))
    return file.getvalue()


def lines(*rows):
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def solution(text):
    """A table with one solution, whose steps have to be found."""
    return lines({"problem": "What?", "solution": text})


FILES: dict[str, Maker] = {
    "lists-of-nulls.parquet": lists_of_nulls,
    "one-long-row.parquet": one_long_row_of_many,
    "a-long-text-in-every-row.parquet": a_long_text_in_every_row,
    "references-of-many.eval": lambda: inspect_log(200, 90, MANY // 50),
    "references-of-one.eval": lambda: inspect_log(1, 3000, MANY // 5),
    "references-too-many.parquet": lambda: parquet(problem=["x" * 100_000] * 2000, steps=[["a"]] * 2000),
    "equal-rows.parquet": equal_rows,
    "deep-structs.parquet": deep_structs,
    "many-columns.parquet": many_columns,
    "head-alone.parquet": lambda: b"PAR1",
    "footer-beyond-the-file.parquet": lambda: b"PAR1" + b"\xff" * 100 + b"\xff\xff\xff\x7fPAR1",
    "brackets.jsonl": lambda: b'{"problem": "q", "steps": [' + b"[]," * (4 * MANY) + b"[]]}\n",
    "deep.jsonl": lambda: b'{"problem": ' + b"[" * MANY + b"\n",
    "long-number.jsonl": lambda: b'{"problem": ' + b"9" * MANY + b"}\n",
    "keys.jsonl": lambda: b"{" + b",".join(b'"%d":0' % number for number in range(MANY // 4)) + b"}\n",
    "empty-objects.jsonl": lambda: b"{}\n" * MANY,
    "empty-objects.json": lambda: b"[" + b"{}," * MANY + b"{}]",
    "empty-lists.json": lambda: b"[" + b"[]," * MANY + b"[]]",
    "open-objects.json": lambda: b'{"a":\n' * (MANY // 10),
    "blank-lines.jsonl": lambda: b"\n" * (10 * MANY),
    "no-line-feed.jsonl": lambda: b"x" * (10 * MANY),
    "surrogates.jsonl": lambda: lines({"problem": "\ud800", "steps": ["\udfff"]}),
    "scores.jsonl": lambda: b'{"id": "a", "scores": [' + b"1," * (3 * MANY) + b"1]}\n",
    "many-scores.jsonl": lambda: b'{"scores": [1]}\n' * (MANY // 4),
    "labels.jsonl": lambda: b'{"data": {}, "annotations": []}\n' * (MANY // 5),
    "many-columns.csv": lambda: b"problem,steps" + b"".join(b",c%d" % number for number in range(60_000)) + b"\n",
    "same-columns.csv": lambda: b"a,b" * 60_000 + b"\n1,2\n",
    "open-quote.csv": lambda: b'problem,steps\n"' + b"a,\n" * MANY,
    "separators.csv": lambda: b"problem,steps\n" + b"," * (10 * MANY),
    "short-rows.csv": lambda: b"problem,steps\n" + b"x\n" * MANY,
    "nul.csv": lambda: b"problem,steps\n" + b"\0" * MANY,
    "utf16.csv": lambda: b"\xff\xfe" + b"a\x00" * MANY + b"\x00",
    "carriage-returns.csv": lambda: b"problem,steps\r" + b"a,b\r" * (MANY // 20),
    "bomb.jsonl.gz": lambda: gzip.compress(b"a" * (40 * MANY), 9),
    "line-of-brackets.jsonl.gz": lambda: gzip.compress(b'{"a": [' + b"[]," * (20 * MANY), 9),
    "twice.jsonl.gz": lambda: gzip.compress(gzip.compress(lines(ROW))),
    "blank.jsonl.gz": lambda: gzip.compress(b"\n" * 3_000_000, 9),
    "numbered.jsonl": lambda: solution("Step 1: " * (MANY // 20)),
    "blank-lines-between.jsonl": lambda: solution("a\n\n" * (MANY // 20)),
    "quotes.jsonl": lambda: solution("['" * (MANY // 20)),
    "quoted-texts.jsonl": lambda: solution('"a",' * (MANY // 20)),
    "thoughts.jsonl": lambda: solution("<think>" * (MANY // 20)),
    "dollars.jsonl": lambda: solution("$" * (MANY // 20)),
    "printed-list.jsonl": lambda: solution("[" * (MANY // 20) + "'a'"),
    **{f"damaged-{seed}.parquet": lambda seed=seed: damaged_parquet(seed) for seed in SEEDS},  # type: ignore[misc]
    **{f"damaged-{seed}.jsonl.gz": lambda seed=seed: damaged_gzip(seed) for seed in SEEDS},  # type: ignore[misc]
}
