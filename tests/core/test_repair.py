"""Gold is written as a sign per step: - neg, 0 neu, + pos, v valid, . unlabelled. `1>3` says that step 3 repairs
step 1."""

from stepsight.core.files.jsonl import format_trace, parse_trace
from stepsight.core.label import Label
from stepsight.core.repair import Convention, ErrorState, by_convention, convert, error_state, lost
from stepsight.core.trace import Step, Trace
from tests.cases import each
from tests.messages import refused

FIRST, ALL, UNTIL, UNLESS = Convention
_SIGNS = {"-": "neg", "0": "neu", "+": "pos", "v": "valid", ".": None}


def _gold(signs):
    return tuple(_SIGNS[sign] for sign in signs)


def _repaired(links, size):
    pairs = dict(link.split(">") for link in links.split())
    return [int(pairs[str(step)]) - 1 if str(step) in pairs else None for step in range(1, size + 1)]


# Gold, repairs, from, to, the gold that it becomes, and the steps whose gold cannot be had back.
CASES = [
    # Without an error every convention says the same.
    ("+0v.", "", UNTIL, FIRST, "+0v.", ""),
    ("+0+", "", UNTIL, ALL, "+0+", ""),
    ("+0+", "", FIRST, UNLESS, "+0+", ""),
    ("...", "", UNTIL, ALL, "...", ""),
    # Behind an error on the last step stands nothing.
    ("+-", "", UNTIL, FIRST, "+-", ""),
    ("+-", "", UNTIL, ALL, "+-", ""),
    ("+-", "", FIRST, UNLESS, "+-", ""),
    # A file with the first error alone says nothing of later steps, so nothing can be lost.
    ("+-..", "", FIRST, ALL, "+---", ""),
    ("+-..", "", FIRST, UNTIL, "+-..", ""),
    ("+-..", "", FIRST, UNLESS, "+---", ""),
    ("v-...", "2>4", FIRST, ALL, "v----", ""),
    ("v-...", "2>4", FIRST, UNTIL, "v--..", ""),
    ("v-...", "2>4", FIRST, UNLESS, "v--..", ""),
    # Two repaired errors: the link of the second one says that it is wrong.
    ("-.....", "1>3 4>6", FIRST, UNTIL, "--.--.", ""),
    ("-.....", "1>3 4>6", FIRST, UNLESS, "--.--.", ""),
    # All wrong: neg behind the error says nothing of these steps.
    ("+---", "", ALL, FIRST, "+-..", ""),
    ("+---", "", ALL, UNTIL, "+-..", ""),
    ("+---", "", ALL, UNLESS, "+---", ""),
    ("+----", "2>4", ALL, FIRST, "+-...", ""),
    ("+----", "2>4", ALL, UNTIL, "+--..", ""),
    ("+----", "2>4", ALL, UNLESS, "+--..", ""),
    # Labels of their own, and no repair.
    ("+-0+", "", UNTIL, FIRST, "+-..", "34"),
    ("+-0+", "", UNTIL, ALL, "+---", "34"),
    ("+-0+", "", UNTIL, UNLESS, "+---", "34"),
    ("+-.+", "", UNTIL, UNLESS, "+---", "4"),
    ("+--.", "", UNTIL, FIRST, "+-..", "3"),
    # Labels of their own, and a repair: the steps from the repair on keep theirs in two conventions.
    ("+-0+0", "2>4", UNTIL, FIRST, "+-...", "345"),
    ("+-0+0", "2>4", UNTIL, ALL, "+----", "345"),
    ("+-0+0", "2>4", UNTIL, UNLESS, "+--+0", "3"),
    ("+--+0", "2>4", UNTIL, UNLESS, "+--+0", ""),
    ("-+", "1>2", UNTIL, UNLESS, "-+", ""),
    ("-+", "1>2", UNTIL, FIRST, "-.", "2"),
    # A relapse: an error after the repair, which nothing repairs.
    ("-+0-+", "1>2", UNTIL, UNLESS, "-+0--", "5"),
    ("-+0-+", "1>2", UNTIL, ALL, "-----", "2345"),
    ("-+0--", "1>2", UNLESS, UNTIL, "-+0-.", ""),
    ("-+0--", "1>2", UNLESS, FIRST, "-....", "2345"),
    # A relapse that is repaired, and one in the very step that repairs.
    ("-+-0+", "1>2 3>5", UNTIL, UNLESS, "-+--+", "4"),
    ("-+--+", "1>2 3>5", UNLESS, UNTIL, "-+--+", ""),
    ("--0+", "1>2 2>4", UNTIL, UNLESS, "---+", "3"),
    ("--0+", "1>2", UNTIL, UNLESS, "----", "34"),
    # A second error within the first: with a later repair of its own it goes on until then, without one until the
    # repair of the first.
    ("-0-0+", "1>4 3>5", UNTIL, UNLESS, "----+", "24"),
    ("-0-0+", "1>4", UNTIL, UNLESS, "---0+", "2"),
    ("-0-+0", "1>5 3>4", UNTIL, UNLESS, "----0", "24"),
    ("-----", "1>4 3>5", ALL, UNTIL, "----.", ""),
    # Unless repaired: neg before a repair follows from the rule, gold behind it does not.
    ("+---", "", UNLESS, FIRST, "+-..", ""),
    ("+---", "", UNLESS, ALL, "+---", ""),
    ("+---", "", UNLESS, UNTIL, "+-..", ""),
    ("+--0", "2>4", UNLESS, UNTIL, "+--0", ""),
    ("+--0", "2>4", UNLESS, FIRST, "+-..", "4"),
    ("+--0", "2>4", UNLESS, ALL, "+---", "4"),
    # To the same convention nothing changes.
    ("+-0+", "2>4", FIRST, FIRST, "+-0+", ""),
    ("+-0+", "2>4", UNLESS, UNLESS, "+-0+", ""),
]  # fmt: skip


@each("signs, links, source, target, expected, gone", CASES)
def test_gold_of_a_convention_becomes_that_of_another(signs, links, source, target, expected, gone):
    repaired = _repaired(links, len(signs))
    converted = convert(_gold(signs), repaired, source, target)
    assert converted == _gold(expected)
    assert lost(_gold(signs), repaired, source, target) == tuple(int(step) - 1 for step in gone)
    back = convert(converted, repaired, target, source)
    assert [place for place in range(len(signs)) if back[place] != _gold(signs)[place]] == [
        int(step) - 1 for step in gone
    ]


@each(
    "signs, links, state",
    [
        ("...", "", None),
        ("+v.", "", ErrorState.CLEAN),
        ("+-", "", ErrorState.OPEN),
        ("-++", "", ErrorState.OPEN),
        ("-+", "1>2", ErrorState.REPAIRED),
        ("--+", "1>3", ErrorState.REPAIRED),
        ("-+-", "1>2", ErrorState.OPEN),
        ("-+-+", "1>2", ErrorState.OPEN),
        ("-+-+", "1>2 3>4", ErrorState.REPAIRED),
        ("--+", "1>2", ErrorState.OPEN),
        ("-.", "1>2", ErrorState.REPAIRED),
    ],
)
def test_a_trace_is_open_until_every_error_is_repaired(signs, links, state):
    assert error_state(_gold(signs), _repaired(links, len(signs))) == state


ROW = {"id": "a", "problem": "q", "steps": ["a", "b", "c", "d"], "labels": ["neg", "neu", "pos", "pos"]}


def test_a_row_with_links_is_read_and_written_back():
    row = ROW | {"repaired": [3, None, None, None], "notices": [None, None, 1, None]}
    trace = parse_trace(row, "line 1")
    assert (trace.steps[0].repaired, trace.steps[2].notices) == (2, 0)
    assert format_trace(trace) == row
    assert trace.digest != parse_trace(ROW, "line 1").digest


def test_a_field_of_another_meaning_stays_with_the_source():
    row = ROW | {"repaired": "by hand", "notices": True}
    trace = parse_trace(row, "line 1")
    assert not trace.has_links
    assert format_trace(trace) == row


def test_a_trace_by_a_convention_keeps_only_the_repairs_of_wrong_steps():
    steps = [Step(("a",), Label.NEG, repaired=1), Step(("b",), Label.POS), Step(("c",), Label.NEG, repaired=3),
             Step(("d",), valid=True)]  # fmt: skip
    converted = by_convention(Trace("", "q", tuple(steps)), Convention.FIRST_ERROR)
    assert [step.gold for step in converted.steps] == ["neg", None, None, None]
    assert [step.repaired for step in converted.steps] == [1, None, None, None]


@each(
    "links",
    [
        {"repaired": [2, None]},
        {"repaired": ["2", None, None, None]},
        {"repaired": [True, None, None, None]},
        {"repaired": [1, None, None, None]},
        {"repaired": [5, None, None, None]},
        {"repaired": [0, None, None, None]},
        {"repaired": [None, 3, None, None]},
        {"labels": ["pos", "neg", "pos", "pos"], "repaired": [None, 1, None, None]},
        {"notices": [None, 3, None, None]},
        {"notices": [None, 2, None, None]},
        {"notices": [None, 9, None, None]},
    ],
)
def test_a_link_to_a_wrong_place_is_refused(links):
    with refused():
        parse_trace(ROW | links, "a.jsonl line 1")
