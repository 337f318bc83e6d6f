"""Transcripts: the help of every command, and what each one prints and writes on the fixed store."""

import argparse
import hashlib
import re
import time

from stepsight.app.commands.cli import build_parser

# Commands that only read, then those that change the store, in this order.
READS = """
    campaign list
    campaign show whole
    campaign show blind
    user list
    evaluate --dataset synthetic
    evaluate --dataset synthetic --json
    evaluate --dataset gallery --json
    evaluate --dataset synthetic --compare mini-bidir mini-causal --by steps
    evaluate --dataset synthetic --evaluator mini-bidir --mode online --random-cut 1
    card --dataset synthetic --evaluator mini-bidir
    doubtful --dataset synthetic
    doubtful --dataset gallery
    agreement whole
    agreement whole --json
    patch export gallery none.jsonl
    patch show patch.jsonl
    report --dataset synthetic --output report
    report --dataset gallery --output gallery-report
    calibrate --dataset sums --evaluator mini-causal
    report --dataset sums --output thresholds-of-its-own
    score --input traces.sums.jsonl --mode hindsight --output scores.jsonl
    score --input traces.sums.jsonl --evaluator mini-causal --mode online
    score --input traces.sums.jsonl --evaluator equations
    score --input traces.sums.jsonl --window 64 --output windows.jsonl
    score --input missing.jsonl
    score --input traces.sums.jsonl --evaluator nowhere
    import-scores sums scores.jsonl --evaluator mine
    import processbench traces.sums.jsonl
    import auto candidates.jsonl
    import any table.csv --fields problem=question,steps=solution --dataset table
    import nothing traces.sums.jsonl
    import labels patch.jsonl
    export judgments synthetic judgments.jsonl --format jsonl
    export judgments synthetic judgments.csv --format csv
    export judgments synthetic mistakes.csv --format csv --evaluator mini-bidir --mistake wrong
    export traces synthetic traces.jsonl
    export outcomes synthetic outcomes.csv --format csv
    stress --dataset synthetic --evaluator mini-bidir --traces 3 --output stress
    rerank candidates.jsonl --evaluator mini-bidir --by min --output chosen.jsonl
    filter pool.jsonl --output filtered --by red --evaluator mini-bidir
    train train.yaml
    campaign create new synthetic --guideline guideline.md --sample 5 --seed 1
    campaign rename new newer
    campaign close newer
    datasets rename sums totals
    datasets delete sums
    datasets delete control
    backup copy.backup
    restore copy.backup --db other.db
    nonsense
"""
_LARGE = 1_000_000
_LONG_NUMBER = re.compile(r"-?\d+\.\d{5,}(?:e-?\d+)?")
LABEL_FORMATS = "prm800k stepwise label-studio argilla jsonl csv events"


def record(scene):
    """Yield a text for the help of each command and for each transcript; written files follow as hashes."""
    for words, parser in _parsers(build_parser(), ()):
        yield f"help/{'-'.join(words) or 'stepsight'}.txt", parser.format_help()
    with scene.copy() as copied:
        lines = [line.split() for line in READS.split("\n") if line.strip()]
        formats = [
            ["export", "labels", campaign, f"{campaign}.{name}", "--format", name]
            for campaign in ("whole", "blind")
            for name in LABEL_FORMATS.split()
        ]
        for argv in lines + formats:
            start = time.time_ns()
            printed = copied.run(*argv)
            files = "".join(f"\nwrote {line}" for line in _written(copied, start))
            name = "-".join(word.strip("-") for word in argv).replace("/", "_")[:100]
            yield f"commands/{name}.txt", f"{printed}{files}"


def _parsers(parser, words):
    yield words, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield from _parsers(below, (*words, name))


def _written(scene, start):
    """Yield the name and the hash of each file that was written since `start`, without what differs from run to
    run, or in its last digits from machine to machine. Large files and those that hold no text have no hash."""
    for path in sorted(scene.folder.rglob("*")):
        if path.is_file() and ".db" not in path.name and path.stat().st_mtime_ns >= start:
            name, content = path.relative_to(scene.folder), path.read_bytes()
            try:
                text = _LONG_NUMBER.sub("n", scene.steady(content.decode())) if len(content) < _LARGE else ""
            except UnicodeDecodeError:
                text = ""
            yield f"{name} {hashlib.sha256(text.encode()).hexdigest()[:16] if text else 'not compared'}"
