"""The reference tables hold every number that the paper's source prints, and nothing else."""

import re

import pytest

from stepsight.core.judgment import Mode
from stepsight.core.metrics.published import published, reference_tables
from stepsight.core.metrics.reasoneval import Errors

MARKUP = re.compile(r"\\(?:textbf|mathbf|boldsymbol|multirow\{\d+\}\{\*\}|shortstack\[l\])|\\,|[{}$]")
NUMBER = re.compile(r"[+-]?\d[\d,]*\.?\d*")


@pytest.fixture(scope="module")
def source(data):
    """The paper's source, which lies beside the real data."""
    path = data.parent / "paper" / "llada-prm.tex"
    if not path.is_file():
        pytest.skip(f"no source of the paper at {path}")
    return path.read_text(encoding="utf-8")


def printed(source):
    """The cells of each row of each table of the source, by the table's label, without headings."""
    found = {}
    for body in re.findall(r"\\begin\{table\*?\}(.*?)\\end\{table\*?\}", source, re.DOTALL):
        tabular = re.search(r"\\begin\{(tabular\*?)\}(.*?)\\end\{\1\}", body, re.DOTALL)
        label = re.search(r"\\label\{(.*?)\}", body)
        assert tabular
        assert label
        # The first rule below the headings; within \shortstack a line break is no end of a row.
        rows = tabular[2].split(r"\midrule", 1)[1].replace(r"\prm", "LLaDA-PRM")
        rows = re.sub(r"\\shortstack\[l\]\{[^}]*\}", "scorer", rows)
        rows = re.sub(r"\\(?:midrule|bottomrule|cmidrule\(lr\)\{.*?\})", "", rows)
        cells = [[cell.strip() for cell in row.split("&")] for row in rows.split(r"\\")]
        found[label[1]] = [row for row in cells if len(row) > 1]
    return found


def numbers(cells, count):
    """The last `count` numbers of a row's cells, `1k` being 1,000 and `8B` 8."""
    found = []
    for cell in cells:
        plain = MARKUP.sub("", cell).replace("k", "000")
        found += [float(number.replace(",", "")) for number in NUMBER.findall(plain)]
    return found[-count:]


def of(label):
    return next(table for table in reference_tables() if table.label == label)


def test_every_table_of_the_paper_is_there(source):
    assert {table.label for table in reference_tables()} == set(printed(source))
    assert len(reference_tables()) == source.count(r"\begin{tabular") == 8


@pytest.mark.parametrize("label", [table.label for table in reference_tables()])
def test_every_number_is_the_printed_one(source, label):
    table, rows = of(label), printed(source)[label]
    assert len(rows) == len(table.rows) > 2
    for cells, row in zip(rows, table.rows, strict=True):
        if label == "tab:full-grid-results":
            # The mask stands between the seed and the figures.
            cells = [cell for cell in cells if cell not in ("Bidir", "Causal")]
        assert len(row.values) == len(table.columns)
        assert numbers(cells, len(table.columns)) == list(row.values), row


@pytest.mark.parametrize("label", [table.label for table in reference_tables()])
def test_rows_stand_under_their_own_names(source, label):
    for cells, row in zip(printed(source)[label], of(label).rows, strict=True):
        text = MARKUP.sub("", " ".join(cells)).replace(r"\_", "_").replace(r"\Delta", "Δ")
        for word in re.findall(r"[A-Za-z]{3,}", row.name):
            assert word in text, (row, text)


def test_the_figures_are_percentages(source):
    for table in reference_tables():
        for row in table.rows:
            units = [row.unit or column.unit for column in table.columns]
            values = [value for value, unit in zip(row.values, units, strict=True) if unit == "%"]
            assert all(0 < value < 100 for value in values)


def test_differences_in_the_tables_are_those_of_their_rows():
    """93.0 online minus offline and so on: a digit copied wrongly would not add up (rounding leaves 0.1)."""
    online = of("tab:online-vs-offline").rows
    grid = of("tab:main-3k-results").rows
    triples = [(online[i - 2], online[i - 1], online[i]) for i in (4, 9, 14)] + [(grid[0], grid[1], grid[2])]
    for first, second, difference in triples:
        assert difference.name.startswith("Δ")
        for one, other, printed_difference in zip(first.values, second.values, difference.values, strict=True):
            assert one - other == pytest.approx(printed_difference, abs=0.1001)


def test_the_mean_of_the_grid_is_the_mean_that_is_printed():
    """1B, 3k, Bidir, accuracy: (44.9 + 44.8 + 46.4) / 3 = 45.37, printed 45.4."""
    runs = [row for row in of("tab:full-grid-results").rows if row.values[1] == 3000]
    for name, printed_row in zip(("Bidir", "Causal"), of("tab:main-3k-results").rows, strict=False):
        means = []
        for size in (1, 2, 3):
            chosen = [row.values[3:6] for row in runs if row.name == name and row.values[0] == size]
            assert len(chosen) == 3
            means += [sum(values) / 3 for values in zip(*chosen, strict=True)]
        assert means == pytest.approx(printed_row.values, abs=0.101)


def test_published_figures_are_found_by_benchmark():
    rows = published("mr-math-invalid")
    assert [(row.evaluator, str(row.mode)) for row in rows] == [
        ("Math-Shepherd", "offline"),
        ("ReasonEval-Mistral", "offline"),
        ("ReasonEval-WizardMath-V1.1", "offline"),
        ("WizardMath-V1.1 control", "offline"),
        ("ReasonEval-Llemma", "offline"),
        ("LLaDA-bidir, batch 64", "offline"),
        ("LLaDA-PRM", "offline"),
        ("LLaDA-PRM", "online"),
    ]
    assert rows[1].values == {"sol_f1": 0.78, "sol_auc": 0.851, "step_f1": 0.686, "step_auc": 0.857}
    assert (rows[1].table, rows[1].benchmark.traces) == ("tab:benchmarks", 159)
    assert rows[7].values["step_f1"] == 0.849
    assert {row.benchmark.errors for row in published("mr-math-redundant")} == {Errors.REDUNDANT}
    assert [len(published("mr-gsm8k", group)) for group in ("", "original", "reversed")] == [7, 7, 0]
    assert published("jsonl") == ()


def test_an_evaluator_of_ours_is_the_published_one_by_its_name_alone():
    llada = published("mr-math-invalid")[6]
    for name in ("LLaDA-PRM", "llada-prm-8b", "llada-prm-8b (bfloat16)", "llada-prm (float16)"):
        assert llada.names(name), name
    for name in ("llada-prm-8b-bs64", "llada-prm-8b (0123abcd)", "llada", "my llada-prm"):
        assert not llada.names(name), name
    assert published("mr-math-invalid")[5].names("llada-prm-8b-bs64 (bfloat16)")


def test_a_row_that_two_tables_print_has_the_same_figures_in_both():
    seen: dict[tuple[str, str, str], tuple[float, ...]] = {}
    twice = 0
    for table in reference_tables():
        figures = [place for place, column in enumerate(table.columns) if column.metric]
        for row in table.rows:
            if row.evaluator:
                values = tuple(row.values[place] for place in figures)
                key = row.dataset, row.evaluator, row.mode
                twice += key in seen
                assert seen.setdefault(key, values) == values
    # Two ReasonEvals and LLaDA-PRM offline, on three benchmarks.
    assert twice == 9


def test_names_are_matched_exactly():
    row = next(row for row in published("mr-math-invalid") if row.evaluator == "ReasonEval-Mistral")
    assert all(map(row.names, ("ReasonEval-Mistral", "reasoneval_mistral-7b", "ReasonEval_mistral-7b")))
    assert not any(map(row.names, ("ReasonEval", "my-reasoneval_mistral-7b", "Mistral", "")))
    everyone = {row.evaluator: row.aliases for row in published("mr-math-invalid")}
    names = [name for row in everyone.items() for name in {row[0], *row[1]}]
    assert len(names) == len(set(names)) > 15


def test_a_difference_is_taken_at_the_printed_digit():
    row = next(row for row in published("mr-math-invalid") if row.evaluator == "ReasonEval-Mistral")
    # 0.77951 prints as 78.0, 0.77949 as 77.9.
    assert [row.difference("sol_f1", number) for number in (0.77951, 0.77949, 0.79)] == [0, -0.001, 0.01]


def test_as_json_says_published():
    shown = published("mr-math-invalid", "")[-1].as_json()
    assert shown == {
        "source": "published",
        "table": "tab:online-vs-offline",
        "dataset": "MR-MATH-invalid",
        "evaluator": "LLaDA-PRM",
        "mode": Mode.ONLINE.value,
        "errors": "invalid",
        "n_traces": 159,
        "sol_f1": 0.898,
        "sol_auc": 0.964,
        "step_f1": 0.849,
        "step_auc": 0.947,
    }
