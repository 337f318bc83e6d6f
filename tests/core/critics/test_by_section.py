"""Critics that are asked about a section at a time: what they are shown, and where their verdicts go."""

import re

import numpy as np
import pytest

from stepsight.core.critics.by_section import asked_sections, summarise
from stepsight.core.critics.settings import read_settings
from stepsight.core.inference_servers.address import parse_address
from stepsight.core.judgment import Mode, Usage
from stepsight.core.label import Label
from stepsight.core.scores import Hindsight
from stepsight.core.trace import Trace
from tests.chat_server import Body, chat_server, verdicts
from tests.core.critics.test_scoring import NEG, POS, asking, critic_of, judged
from tests.messages import refused

# Sections: steps 1 and 2 (an approach), 3 and 4 (a doubt), 5 (a check). The second step has two sub-steps.
LONG = Trace.of(
    "What is 17 * 3?",
    [
        "Let us try to split the number 17 into 10 and 7.",
        ["10 * 3 is 30 and 7 * 3 is 24.", "So the sum is 54."],
        "Wait, that is not right for the 7.",
        "7 * 3 is 21, so the sum is 51.",
        "Let me check the result: 51 / 3 is 17.",
    ],
    id="long",
)


def numbers(body: Body) -> list[int]:
    return [int(one) for one in re.findall(r'<step number="(\d+)"', body["messages"][-1]["content"])]


def answer_of(body: Body, wrong: tuple[int, ...] = ()) -> str:
    """All steps shown are right but for those of these numbers."""
    asked = numbers(body)
    labels = verdicts(["neg" if one in wrong else "pos" for one in range(1, max(asked) + 1)])
    return "{" + ", ".join(re.findall(r'"step_\d+": \{.*?\}', labels)[asked[0] - 1 :]) + "}"


def test_sections_have_their_steps_alone_and_a_summary_of_what_came_before() -> None:
    with chat_server(lambda body: answer_of(body, (3,))) as chat, asking(chat, ",sections=4000") as critic:
        (judgment,) = judged(critic, [LONG])
        estimated = critic.estimate(LONG, Mode.OFFLINE)
    assert [numbers(body) for body in chat.asked] == [[1, 2, 3], [4, 5], [6]]
    assert estimated.calls == 3
    first, second, third = (str(body["messages"][-1]["content"]) for body in chat.asked)
    assert "<earlier>\nNothing. The solution begins with this section.\n</earlier>" in first
    assert "Wait" not in first
    approach = (
        'Steps 1 to 3, approach. First line: "Let us try to split the number 17 into 10 and 7." '
        'Last line: "So the sum is 54." Your verdicts: neg: 3; pos: the others.'
    )
    assert f"<earlier>\n{approach}\n</earlier>" in second
    assert "step_4 to step_5, one for each step of the section" in second
    assert f"{approach}\nSteps 4 to 5, doubt. First line: " in third
    assert third.count("<step ") == 1
    wanted = [body["response_format"]["json_schema"]["schema"]["required"] for body in chat.asked]
    assert wanted == [["step_1", "step_2", "step_3"], ["step_4", "step_5"], ["step_6"]]
    assert judgment.offline is not None
    assert judgment.offline.probs.tolist() == [POS, POS, NEG, POS, POS, POS]
    assert "**Step 2.2: neg.** since it is so 3" in judgment.rationale
    assert judgment.spent == Usage(3, 0, 900, 60)


def test_nothing_after_its_section_changes_a_verdict() -> None:
    def last_wrong(body: Body) -> str:
        return answer_of(body, (numbers(body)[-1],))

    with chat_server(last_wrong) as chat, asking(chat, ",sections=4000") as critic:
        (online,) = judged(critic, [LONG], Mode.ONLINE)
        assert sorted(map(numbers, chat.asked)) == [[1], [1, 2, 3], [4], [4, 5], [6]]
        chat.asked.clear()
        (judgment,) = judged(critic, [LONG], Mode.HINDSIGHT)
        assert critic.estimate(LONG, Mode.HINDSIGHT).calls == len(chat.asked) == 6
    assert isinstance(judgment.result, Hindsight)
    wrong = [[int(row[0]) for row in rows] for rows in judgment.result.rows]
    assert wrong == [[1], [0, 1], [0, 0, 1], [0, 0, 1, 1], [0, 0, 1, 0, 1], [0, 0, 1, 0, 1, 1]]
    assert online.online is not None
    assert np.array_equal(online.online.probs, judgment.result.online.probs)


def test_the_most_frequent_verdict_of_samples_is_in_the_summary() -> None:
    def answer(body: Body) -> str:
        return answer_of(body, (1,) if body["seed"] == 1 else (2,))

    with chat_server(answer) as chat, asking(chat, ",sections=4000,samples=3") as critic:
        (judgment,) = judged(critic, [LONG])
    assert judgment.offline is not None
    assert np.allclose(judgment.offline.probs[:3, 0], [1 / 3, 2 / 3, 0])
    assert all("Your verdicts: neg: 2;" in body["messages"][-1]["content"] for body in chat.asked[3:])


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("They are right.", "no JSON"),
        ("{}", "verdicts on other steps than 4 to 5, or in another order"),
        # Of another section, counted from its own beginning, and with a step of the next one.
        (verdicts(["pos"] * 3), "verdicts on other steps than 4 to 5, or in another order"),
        (verdicts(["pos"] * 2), "verdicts on other steps than 4 to 5, or in another order"),
        (
            '{"step_4": {"verdict": "pos"}, "step_5": {"verdict": "pos"}, "step_6": {"verdict": "pos"}}',
            "verdicts on other steps than 4 to 5, or in another order",
        ),
        ("", "an empty answer"),
    ],
)
def test_a_section_without_readable_verdicts_leaves_no_judgment(answer: str, reason: str) -> None:
    def confused(body: Body) -> str:
        return answer if numbers(body) == [4, 5] else answer_of(body)

    with chat_server(confused) as chat, asking(chat, ",sections=4000") as critic:
        assert judged(critic, [LONG]) == []
        assert critic.tally.silent == {reason: (1, "long, steps 4 to 5")}
    # The last section is not asked about.
    assert len(chat.asked) == 2


def test_long_sections_are_divided_at_steps() -> None:
    # 100 tokens are 300 characters: two steps of 120, or one of 400.
    steps = ["x = 1 is what we have. " + "a" * 97, "b" * 120, "c" * 120, "d" * 400, "e" * 10]
    sections = asked_sections(Trace.of("p", steps), 100)
    assert [(one.start, one.stop) for one in sections] == [(0, 2), (2, 3), (3, 4), (4, 5)]


def test_borders_do_not_depend_on_later_steps() -> None:
    steps = [step.text for step in LONG.steps] + ["So we have it.", "Therefore the answer is 51."]
    whole = [(one.start, one.kind) for one in asked_sections(Trace.of("p", steps), 4000)]
    for count in range(1, len(steps)):
        part = [(one.start, one.kind) for one in asked_sections(Trace.of("p", steps[:count]), 4000)]
        assert part == [one for one in whole if one[0] < count]


def test_a_language_without_words_gives_one_section_of_no_kind() -> None:
    trace = Trace.of("3 + 4?", ["まず3を取ります。", "次に4を足します。", "答えは7です。"])
    (section,) = asked_sections(trace, 4000)
    assert (section.start, section.stop, section.kind) == (0, 3, "")
    critic = critic_of("critic:http://localhost:1/v1#m,sections=4000")
    assert critic.estimate(trace, Mode.OFFLINE).undivided == 1
    assert critic.estimate(LONG, Mode.OFFLINE).undivided == 0


def test_a_summary_keeps_to_its_share_and_names_what_was_wrong_before() -> None:
    steps = [f"Let us try the number {i}. {'It is long. ' * 30}" for i in range(60)]
    trace = Trace.of("p", steps)
    labels = [Label.NEG if i < 50 else Label.NEU if i == 59 else Label.POS for i in range(60)]
    sections = asked_sections(trace, 200)
    assert len(sections) == 60
    text = summarise(trace, sections, labels, 200)
    listed = ", ".join(map(str, range(1, 21)))
    assert text.split("\n") == [
        f"Steps 1 to 59, not quoted here. Your verdicts: neg: {listed} and 30 more; pos: the others.",
        f'Step 60, approach. First line: "{steps[59][:159]}…" Your verdicts: neu: 60; pos: the others.',
    ]
    assert summarise(trace, sections[:0], [], 200) == "Nothing. The solution begins with this section."


def test_sections_are_part_of_name_and_fingerprint() -> None:
    base = "critic:http://localhost:1/v1#m"
    critics = [critic_of(f"{base}{options}") for options in ("", ",sections=4000", ",sections=2000")]
    assert len({critic.fingerprint for critic in critics}) == 3
    assert [critic.name for critic in critics[1:]] == [f"{base},sections=4000", f"{base},sections=2000"]
    assert "with its section (up to 4,000 tokens)" in critics[1].described
    # As before there were sections, so that judgments of the time keep their evaluator.
    assert critics[0].fingerprint.endswith("e63b344dd921b89f98516ab25a3887ef9efec36422a88cd87f089470d30f2249")
    for options in (",sections=4000,preset=thinkprm", ",sections=99", ",sections=all"):
        with refused():
            read_settings(parse_address(f"{base}{options}"))
