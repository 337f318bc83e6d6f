import pytest

from stepsight.core.judgment import Mode
from stepsight.core.metrics.reasoneval import Errors
from stepsight.core.trace import Step, Trace
from stepsight.storage.judgments.evaluators import evaluators_of
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.report.dataset import dataset_part, evaluators_part, excerpt, tables_of
from stepsight.training.report.tables import Table
from tests.storage.samples import add, evaluator, judge
from tests.training.judged import fill, measure, measure_stored

TITLES = [
    "Solutions and steps",
    "Calibration of validity",
    "First errors",
    "Redundant solutions",
    "Online and offline",
    "By position",
    "By class",
    "The neutral class",
]


def blocks_of(part, title):
    (section,) = [section for section in part.sections if section.title == title]
    return section.contents


def words_of(part, title):
    return [content for content in blocks_of(part, title) if isinstance(content, str)]


def test_a_dataset_of_three_classes_has_everything(sqlite_store):
    part = dataset_part(measure(sqlite_store, fill(sqlite_store)))
    assert [section.title for section in part.sections] == TITLES
    assert part.title == "three_way"
    assert part.lead == ("plain, from test.jsonl (SHA-256 000000000000…): 4 traces, 2 with a wrong step, 12 steps.")
    assert [table.name.removeprefix("three-way-") for table in tables_of([part])] == [
        "invalid-offline", "invalid-online", "redundant-offline", "redundant-online", "calibration", "first-errors",
        "outcomes", "redundancy-outcomes", "online-minus-offline", "change-invalid", "change-redundant",
        "position-invalid", "position-invalid-gain", "position-redundant", "position-redundant-gain", "three-way",
        "classes", "neu-decisions", "confusion",
    ]  # fmt: skip
    plots = [
        plot
        for section in part.sections
        for content in section.contents
        if not isinstance(content, str | Table)
        for plot in content
    ]
    assert len(plots) == len({plot.caption for plot in plots})
    # Every figure draws something or says why not.
    assert all(plot.figure is not None or plot.notes for plot in plots)
    assert sum(plot.figure is not None for plot in plots) > 15


def test_a_dataset_of_soft_labels_alone_has_their_section_alone(sqlite_store):
    steps = tuple(Step((f"step {'x' * size}",), share=share) for size, share in ((1, 1.0), (4, 0.5), (9, 0.25)))
    (trace,) = add(sqlite_store, [Trace("soft", "What is it?", steps)], "soft")
    mini = evaluator(sqlite_store)
    save_judgments(sqlite_store, mini.id, [judge(trace, Mode.HINDSIGHT)])
    evaluation = measure_stored(sqlite_store, find_dataset(sqlite_store, "soft"), [mini], draws=20)
    part = dataset_part(evaluation)
    assert [section.title for section in part.sections] == ["Soft labels"]
    assert part.lead.endswith("1 trace, no hard labels, 3 steps.")
    assert words_of(part, "Soft labels")[0].startswith("These traces have soft labels alone.")
    assert [section.title for section in excerpt(evaluation, Mode.ONLINE, Errors.INVALID).shown()] == [
        "Soft labels"
    ]
    rows = {(row[0], row[1]): dict(zip([one.key for one in table.columns], row, strict=True))
            for table in tables_of([part]) for row in table.rows}  # fmt: skip
    # Longer steps have smaller shares.
    assert rows["baseline:length", "offline"]["share_spearman"].number == pytest.approx(1)
    ours = rows["mini", "offline"]
    assert ours["above_baseline"].number == pytest.approx(ours["share_spearman"].number - 1)
    assert ours["n_shares"] == 3


def test_a_section_without_figures_says_why(sqlite_store):
    dataset = fill(sqlite_store, [["neg", "neg", "neg"], [None] * 3, ["neg", "neg", None], [None] * 3])
    words = [one for one in evaluators_of(sqlite_store, dataset.id) if one.name == "words"]
    part = dataset_part(measure_stored(sqlite_store, dataset, words, draws=20))
    assert words_of(part, "Online and offline") == [
        "No evaluator has judged these traces both online and offline; hindsight judgments give both."
    ]
    (told,) = words_of(part, "By class")
    assert told.startswith("The only label in this gold is neg")
    assert words_of(part, "The neutral class") == [told]
    assert words_of(part, "Solutions and steps") == ["No evaluator has judged these traces online."]
    # The baselines are not shown in a mode that nobody judged in.
    assert {row[1] for table in tables_of([part]) if table.columns[1].key == "mode" for row in table.rows} == {
        "offline"
    }


def test_traces_that_stop_at_their_error_are_warned_of(sqlite_store):
    dataset = fill(sqlite_store, [["pos", "pos", "neg"]] * 4)
    found = measure(sqlite_store, dataset)
    part = dataset_part(found)
    assert "stop at their first error" in part.warning
    assert words_of(part, "Online and offline") == [part.warning]
    assert {row.mode for row in found.rows} == {Mode.ONLINE}


def test_redundant_errors_alone_have_no_roc_of_validity(sqlite_store):
    golds = [["pos", "neu", "pos"], ["pos", "pos", "neu"], ["neu", "pos", "pos"], ["pos", "pos", "pos"]]
    part = dataset_part(measure(sqlite_store, fill(sqlite_store, golds)))
    assert words_of(part, "Solutions and steps") == [
        "The gold has no wrong step, so that there is no ROC of validity; that of redundancy is shown."
    ]
    captions = [plot.caption for content in blocks_of(part, "Solutions and steps") if isinstance(content, list)
                for plot in content]  # fmt: skip
    assert captions
    assert all(caption.startswith("ROC of redundancy") for caption in captions)
    assert words_of(part, "First errors") == [
        "First-error accuracy, ProcessBench F1: no trace has an error",
        "MR-Score, solutions (MCC): the gold has one class only",
    ]


def test_an_excerpt_is_of_one_mode_and_one_kind_of_error(sqlite_store):
    found = measure(sqlite_store, fill(sqlite_store))
    part = excerpt(found, Mode.OFFLINE, Errors.REDUNDANT)
    contents = [content for section in part.sections for content in section.contents]
    tables = {table.name.removeprefix("three-way-"): table for table in contents
              if isinstance(table, Table)}  # fmt: skip
    assert list(tables) == [
        "redundant-offline", "calibration", "first-errors", "outcomes", "redundancy-outcomes",
        "online-minus-offline", "change-redundant", "position-redundant", "position-redundant-gain", "three-way",
        "classes",
    ]  # fmt: skip
    # What is of no kind of error is there beside redundant errors.
    assert {row[1] for row in tables["calibration"].rows} == {"offline"}
    assert {row[1] for row in tables["position-redundant"].rows} == {"offline", "online"}
    whole = {table.name: table for table in tables_of([dataset_part(found)])}
    assert tables["redundant-offline"] == whole["three-way-redundant-offline"]
    assert part.find_table("three-way-classes") is tables["classes"]
    assert part.find_table("three-way-confusion") is None
    assert list(part.classes) == ["one_mind"]
    decisions, confusion, *plots = part.classes["one_mind"].contents
    assert part.find_table("three-way-confusion", "one_mind") is confusion
    assert [row[:3] for row in confusion.rows] == [
        ("one_mind", "offline", "neg"), ("one_mind", "offline", "neu"), ("one_mind", "offline", "pos")
    ]  # fmt: skip
    assert sum(map(len, plots)) == 4
    assert {row[0] for row in decisions.rows} == {"one_mind"}


def test_the_evaluators_are_listed(sqlite_store):
    dataset = fill(sqlite_store)
    (section,) = evaluators_part(evaluators_of(sqlite_store, dataset.id), 1000).sections
    assert "1,000 resamples" in section.contents[0]
    assert isinstance(section.contents[-1], Table)
    (section,) = evaluators_part([], 1000).sections
    assert "only baselines are shown" in section.contents[-1]
