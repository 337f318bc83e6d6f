from stepsight.core.trace import Trace
from stepsight.training.data.transforms import balance_ratio, is_balanced
from tests.cases import each


def trace(labels):
    """`-`, `0`, `+` and `.` are neg, neu, pos and unlabelled."""
    names = {"-": "neg", "0": "neu", "+": "pos", ".": None}
    return Trace.of("q", ["x"] * len(labels), [names[label] for label in labels])


@each(
    "labels, ratio",
    [
        ("+-", 1 / 1),
        ("+++-", 1 / 3),
        ("++0-", 1 / 2),
        ("+++00-", 1 / 3),
        ("00--", 2 / 2),
        # One class, or none, is not balanced at all.
        ("+++", 0),
        ("-", 0),
        ("...", 0),
        # What has no label is not counted.
        ("+-......", 1 / 1),
    ],
)
def test_the_ratio_is_of_the_rarest_to_the_commonest_label_that_occurs(labels, ratio):
    assert balance_ratio(trace(labels)) == ratio


def test_a_step_with_substeps_is_one():
    assert balance_ratio(Trace.of("q", [["a", "b", "c"], "d"], ["pos", "neg"])) == 1


def test_the_paper_filters_its_pool_by_both_and_its_test_by_the_ratio_alone():
    # 2 pos, 1 neg: 0.5 is enough. Without a neu it is not in the training pool.
    assert is_balanced(trace("++-"), 0.5, every_label=False)
    assert not is_balanced(trace("++-"), 0.5, every_label=True)
    assert is_balanced(trace("+0-+"), 0.5, every_label=True)
    # 3 pos, 1 neu, 1 neg: 1 / 3.
    assert not is_balanced(trace("+0-++"), 0.5, every_label=True)


def test_nothing_is_asked_for_by_default():
    assert is_balanced(trace("+++"), 0.0, every_label=False)
    assert is_balanced(trace("..."), 0.0, every_label=False)


def test_the_shares_of_the_real_file(data):
    from stepsight.storage.importers import KINDS, read_traces

    with open(data / "prm800k" / "test.jsonl", "rb") as file:
        traces = [trace for _, trace in read_traces(KINDS["prm800k"], file, "test.jsonl")]
    assert len(traces) == 200
    assert sum(is_balanced(trace, 0.5, every_label=False) for trace in traces) == 60
