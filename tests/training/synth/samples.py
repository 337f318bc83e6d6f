"""For the tests of the corpus: notations, a small story, and the hash of traces."""

import hashlib
import json
from typing import Any

import yaml

from stepsight.core.files.jsonl import format_trace
from stepsight.core.validation import validate
from stepsight.training.synth.story import Story
from stepsight.training.synth.style import Style

PLAIN = Style(False, "*", "/")
LATEX = Style(True, "\\times", "frac")


def sha256(traces):
    """Of the file that `stepsight synth` writes."""
    lines = (json.dumps(format_trace(trace), ensure_ascii=False) + "\n" for trace in traces)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def calculates(trace, index):
    """Whether a step finds something: it neither reads the problem, announces, checks nor gives the answer."""
    return bool(set(trace.meta["claims"][index]) - set(trace.meta["givens"]) - {"answer"})


def read_story(text):
    fields: dict[str, Any] = yaml.safe_load(text)
    return validate(Story, fields)


SHOP = read_story("""
    problems: "{name} buys {n_} at @{p} each and a bag for @{q}. What is paid?"
    names: {name: [Ann, Ben]}
    quantities:
      n: {values: 2 to 19, noun: cups, words: {12: a dozen cups}}
      p: {values: 2 to 19, noun: dollars for a cup}
      q: {values: 5 to 39, noun: dollars for the bag}
    steps:
      a: {formula: n * p, what: the cost of the cups, mistakes: [{kind: invalid inference, formula: n * n}]}
      b: {formula: a + q, what: the total}
      c: {formula: b + 5, what: the total with delivery}
    verifications: [{steps: {x: answer - 5, y: x - q, z: y / n}, equals: p}]
    bounds: {b > a: "the total {b} must be more than {a}"}
""")
