"""Numbers that a step takes over from the problem or an earlier step."""

from stepsight.core.equations import Method, check_steps
from stepsight.core.equations.evaluator import checks_of, faults
from stepsight.core.equations.wording import finding
from stepsight.core.trace import Trace
from tests.cases import each

BOOK = "A book has 45 pages. Ann reads 5 of them a day, and Ben 1,250 words an hour."
LINE = "A line has $y = 3x + 5$. What is $y$ if $2x = 24$?"


def miscopied(problem: str, *steps: str) -> list[tuple[str, str, int | None]]:
    """For each miscopied number of the last step: the number, what was stated, and the step that stated it, counted
    from 1, or 0 for the problem."""
    return [
        (steps[-1][check.start : check.end], check.right, None if check.source is None else check.source + 1)
        for check in check_steps(problem, steps)[-1]
        if check.method is Method.COPY
    ]


@each(
    "problem, steps, expected",
    [
        # In a calculation: digits swapped, changed, lost and added, of the problem and of an earlier step.
        (BOOK, ["She needs 54 / 5 = 10.8 days."], ("54", "45", 0)),
        (BOOK, ["In 3 hours he reads 3 * 1,520 = 4560 words."], ("1,520", "1250", 0)),
        (BOOK, ["In 3 hours he reads 3 * 1280 = 3840 words."], ("1280", "1250", 0)),
        (BOOK, ["3 * 1250 = 3750 words.", "So 375 + 370 = 745."], None),
        (BOOK, ["3 * 1253 = 3759.", "So 379 / 3 = 126.3."], ("379", "3759", 1)),
        ("A truck of 3755 kg is loaded.", ["15 * 5000 = 75000", "75000 + 3755 = 78755", "78755 / 7855 = 10"],
         ("7855", "78,755", 2)),
        # In a sentence, before the same noun.
        ("A book has 46 pages, and Ann reads 5 a day.", ["Of the 64 pages, she reads 5."], ("64", "46", 0)),
        (BOOK, ["Of the 54 chapters, she reads some."], None),
        (BOOK, ["There are 54 pages."], None),
        # The value of a letter, and a number put in for it.
        (LINE, ["$x = 24 / 2 = 12$.", "So $x = 21$."], ("21", "x = 12", 1)),
        (LINE, ["$x = 12$.", "Then $3x + 5 = 3 \\cdot 21 + 5 = 68$."], ("3 \\cdot 21 + 5", "x = 12", 1)),
        (LINE, ["$x = 12$.", "Then $3x + 5 = 3(17) + 5 = 56$."], ("3(17) + 5", "x = 12", 1)),
        # The final answer.
        (BOOK, ["500 + 480 = 980 words.", "#### 990"], ("990", "980", 1)),
        (LINE, ["$3x + 5 = 341$.", "The answer is: $\\boxed{314}$"], ("314", "341", 1)),
    ],
)  # fmt: skip
def test_a_slip_is_found_with_what_was_stated_and_where(
    problem: str, steps: list[str], expected: tuple[str, str, int] | None
) -> None:
    assert miscopied(problem, *steps) == ([expected] if expected else [])


@each(
    "problem, steps",
    [
        # Stated, in whatever notation, or worked out from what was.
        (BOOK, ["She reads 54 pages of another one.", "54 / 2 = 27"]),
        ("Thirty-five pupils and 53 parents came.", ["35 + 53 = 88"]),
        ("It weighs 1 250 kg.", ["1250 - 50 = 1200"]),
        ("It takes 1.25 hours and 152 km.", ["125 + 25 = 150"]),
        (BOOK, ["Then 45 + 9 = 54, and 54 / 6 = 9."]),
        ("Tom has 45 marbles and buys 3 bags of 3 marbles.", ["He now has 54 marbles."]),
        ("It is 25% of 812 km.", ["812 * 0.25 = 203", "203 - 20 = 183"]),
        # Conversions, roundings, other units, operands that are chosen or counted.
        ("It takes 162 minutes.", ["162 / 60 = 2.7"]),
        ("It takes 1234 minutes.", ["1230 / 60 = 20.5"]),
        ("It costs 450 cents.", ["4.50 * 2 = 9"]),
        ("Ann read 120 pages.", ["102 + 18 = 120"]),
        ("Ann read 105 pages.", ["115 / 5 = 23"]),
        ("Ann earned $2400.", ["2400 + 4200 = 6600"]),
        # Supposed, tried, refuted or asked for.
        (BOOK, ["If it had 54 pages, 54 / 5 = 10.8."]),
        (BOOK, ["Is it 54 / 5 = 10.8?"]),
        (BOOK, ["54 / 5 = 10.8 is wrong, since there are 45."]),
        # Problems about numbers, and problems with formulas, whose solutions try numbers.
        ("The number 45 has two digits.", ["54 - 5 = 49"]),
        ("What is $\\sqrt{45}$?", ["54 / 5 = 10.8"]),
        # Letters with another meaning, several values, a rounded one, or another order.
        (LINE, ["$x = 12$.", "Now let $x = 21$."]),
        (LINE, ["$x = 12$ or $x = 30$.", "So $x = 21$."]),
        (LINE, ["If $x = 12$, then $y = 41$.", "So $3x + 5 = 3(17) + 5 = 56$."]),
        (LINE, ["$x = 2.4583$.", "Then $3x + 5 = 3(2.46) + 5 = 12.38$."]),
        (LINE, ["$x = 3$.", "$y = 4$.", "$x + y = 4 + 3 = 7$."]),
        (LINE, ["$x = 3$.", "$y = 4$.", "We have $x / y = 5 / 6$."]),
        (LINE, ["$x = 12$.", "No, that is wrong: $x = 21$."]),
        # An answer that is worked out or rounded.
        (BOOK, ["45 / 5 = 9", "Answer: 45 + 9 = 54"]),
        (BOOK, ["11 / 30 = 0.3667, or 36.67 percent", "A: 37"]),
    ],
)  # fmt: skip
def test_what_is_taken_over_rightly_or_follows_is_not_flagged(problem: str, steps: list[str]) -> None:
    assert not miscopied(problem, *steps)


def test_numbers_of_texts_that_are_not_checked_count_as_stated() -> None:
    table = "The numbers:\n```\n54\n```"
    assert miscopied(BOOK, table, "54 / 5 = 10.8") == []
    assert miscopied(BOOK, "At 9 a.m. there were 54 of them.", "54 / 5 = 10.8") == []
    assert miscopied(f"{BOOK} {'A sentence. ' * 300} There are 54.", "54 / 5 = 10.8") == []


def test_a_miscopied_number_is_described_with_its_source() -> None:
    trace = Trace.of(BOOK, ["Ben: 3 * 1250 = 3750.", ["So 3570 + 1 = 3571.", "Ann: 54 / 5 = 10.8."]])
    found = [finding(trace, i, check) for i, part in enumerate(checks_of(trace)) for check in faults(part)]
    assert found == ["step 1 states 3750, not 3570", "the problem states 45, not 54"]


def test_a_source_in_a_divided_step_has_the_name_of_the_sub_step() -> None:
    trace = Trace.of(BOOK, [["We multiply.", "3 * 1250 = 3750."], "So 3570 + 1 = 3571."])
    ((check,),) = [faults(part) for part in checks_of(trace) if faults(part)]
    assert finding(trace, 2, check) == "step 1.2 states 3750, not 3570"


def test_an_equation_that_fails_stands_beside_the_number_that_it_miscopies() -> None:
    trace = Trace.of(BOOK, ["54 / 5 = 11.8"])
    assert [finding(trace, 0, check) for check in faults(checks_of(trace)[0])] == [
        "the problem states 45, not 54",
        "54 / 5 is 10.8, not 11.8",
    ]
