"""The corpus of injections against everything that needs no browser."""

import csv
import io

import pytest

from stepsight.app.markup.text import text_html
from stepsight.core.escaping import csv_text, plain
from stepsight.core.trace import Trace
from stepsight.storage.database.schema import check_name
from tests.app.elements import INJECTIONS, read
from tests.app.injection import CELLS, HALVES, NAMES, PAYLOADS
from tests.cases import each
from tests.messages import refused

SIGNS = ("=", "+", "-", "@")


def test_there_are_many_and_they_differ():
    assert len(PAYLOADS) == len(set(PAYLOADS)) > 90


@each("text", [*PAYLOADS, *INJECTIONS])
def test_a_text_is_only_text_and_loses_nothing(text):
    page = read(text_html(text))
    assert {element.tag for element in page.all()} <= {"span"}
    for span in page.all("span"):
        assert set(span.attributes) <= {"class", "data-source", "data-display"}
        # As the page shows it once the switch is at source.
        page.text = page.text.replace(span.text, span["data-source"], 1)
    assert all(piece in page.text for piece in text.replace("\\$", "$").split("$"))


@each("text", PAYLOADS)
def test_a_cell_is_never_a_formula(text):
    (row,) = csv.reader(io.StringIO(csv_text([["x", text, f" {text}"]], begins=False), newline=""))
    assert len(row) == 3
    for cell, written in zip(row[1:], (text, f" {text}"), strict=True):
        assert not cell.lstrip().startswith(SIGNS)
        assert plain(cell) == written


def test_the_cells_would_be_formulas():
    assert sum(text.lstrip().startswith(SIGNS) for text in CELLS) >= 8


@pytest.mark.parametrize("name", NAMES)
def test_such_names_can_be_given(name):
    assert check_name(name, "the name") == name


@pytest.mark.parametrize("text", HALVES)
def test_a_text_that_no_file_can_hold_is_refused(text):
    with refused():
        Trace.of("q", [text])
    with refused():
        Trace.of(text, ["x"])
