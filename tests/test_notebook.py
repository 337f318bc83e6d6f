"""The notebook of the manual: its cells run one after the other, and what they show is right."""

import ast
import json
import re
from typing import Any

import plotly.graph_objects as go
import pytest

from stepsight.core.judgment import Judgment
from stepsight.core.metrics.published import published
from stepsight.core.trace import Trace
from stepsight.storage.database.store import open_store
from stepsight.storage.importers.catalogue import find_benchmark
from stepsight.storage.judgments.score_files import import_scores
from stepsight.storage.traces.imports import import_file
from tests.conftest import ROOT

PATH = ROOT / "docs" / "notebook.ipynb"
CELLS = json.loads(PATH.read_text(encoding="utf-8"))["cells"]
CODE = [cell for cell in CELLS if cell["cell_type"] == "code"]
TAG = "mr-math"


def show(cell, names):
    """Run a cell; gives the value of its last line, which a notebook would show."""
    body = ast.parse("".join(cell["source"])).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), PATH.name, "exec"), names)
    return eval(compile(ast.Expression(last.value), PATH.name, "eval"), names) if last else None


def run(cells, names):
    return [shown for cell in cells if (shown := show(cell, names)) is not None]


@pytest.fixture
def names(tmp_path, monkeypatch):
    monkeypatch.setenv("STEPSIGHT_DB", str(tmp_path / "stepsight.db"))
    names: dict[str, Any] = {}
    yield names
    names["store"].close()


@pytest.mark.slow
def test_it_goes_from_a_file_to_a_figure_in_ten_cells(names):
    assert len(CODE) == 10
    shown = run([cell for cell in CODE if TAG not in cell["metadata"].get("tags", [])], names)
    trace, judgment, head, turned, figure = shown
    assert isinstance(trace, Trace)
    assert isinstance(judgment, Judgment)
    assert isinstance(figure, go.Figure)
    assert "<li>" in trace._repr_html_()
    assert "change" in judgment._repr_html_()
    assert head.evaluator.tolist() == ["mini-bidir"] * 5
    assert len(turned)
    assert (turned.validity >= 0.5).all()
    assert (turned.offline < 0.5).all()
    # Every point of the figure is a step.
    assert sum(len(one.x) for one in figure.data) == names["both"].gold.notna().sum()


def test_mr_math_comes_out_as_published(names, data):
    folder = data / "mr-math"
    with open_store() as store:
        import_file(store, "mr-math-invalid", folder / "mr-math_invalid_errors.json", "mr-math-invalid")
        for score in find_benchmark("mr-math-invalid").scores:
            path = folder / "scores" / "invalid" / score.file.name
            if path.is_file():
                import_scores(store, "mr-math-invalid", path, score.evaluator)
    run(CODE[:2], names)
    beside, table = run([cell for cell in CODE if TAG in cell["metadata"].get("tags", [])], names)
    printed = {name: one.values for name in table.index for one in published("mr-math-invalid") if one.names(name)}
    assert list(printed) == ["Math-Shepherd", "ReasonEval-Mistral-7B", "ReasonEval-WizardMath-7B-V1.1"]
    for name, figures in printed.items():
        for figure in ("step_f1", "step_auc"):
            # The paper prints tenths of a percent.
            assert table.loc[name, figure] == figures[figure]
            assert beside.loc[name, ("value", figure)] == beside.loc[name, ("published", figure)] == figures[figure]


def test_every_link_of_the_notebook_resolves():
    text = "".join("".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "markdown")
    links = re.findall(r"\]\((\w+\.md)(?:#[\w-]+)?\)", text)
    assert links
    assert [link for link in links if not (ROOT / "docs" / link).is_file()] == []
    assert all(not cell["outputs"] for cell in CODE)
