import json
from pathlib import Path
from typing import Any

from stepsight.core.text.sections import find_sections
from tests.core.text.long_thoughts import long_thoughts

# Long solutions of public data that were divided by hand before the rules were written: file, row, and the numbers
# of the steps at which a section begins.
BY_HAND = """
    prm800k/train.jsonl 640: 3 11 17 23 25 31 37
    prm800k/train.jsonl 317: 3 7 13 18 22 28 34 36
    prm800k/train.jsonl 689: 4 11 26 32 34
    prm800k/test.jsonl 168: 8 9 15 19 27 29
    prm800k/train.jsonl 654: 4 8 16 27
    prm800k/test.jsonl 116: 8 17 21 27
    prm800k/train.jsonl 509: 5 14 25
    prm800k/train.jsonl 669: 3 5 10 13 15 25
    prmbench/redundency.jsonl 362: 6 14 22 28 38 52 55 60 61 66 73 82 93 102 104 107
    prmbench/step_contradiction.jsonl 300: 4 11 16 26 31 38 47
    prmbench/missing_condition.jsonl 270: 5 7 8 12 23 25 28 32 39 41 43 45 47 50 54 55 57 65 67
    prmbench/counterfactual.jsonl 387: 11 14 21 27 35 45 48 58 62 64
    prmbench/circular.jsonl 342: 2 8 12 15 18 20 23 27 33 35 37 42 44 47 50 52 55 57 59 62
    prmbench/confidence.jsonl 122: 8 10 11 12 20 25 34 37 45 54 61
    prmbench/redundency.jsonl 197: 7 8 10 16 20 28 32 36 38 49 61
    mr-math/mr-math_redundant_errors.json 178: 5 11 18 25 32 40
    mr-math/mr-math_redundant_errors.json 287: 3 11 19 23 25
    mr-math/mr-math_redundant_errors.json 60: 10 12 17 24
    mr-math/mr-math_redundant_errors.json 280: 6 11 16 19 24
    mr-math/mr-math_redundant_errors.json 257: 4 6 14 17 22 24
"""


def f1(thoughts: list[tuple[list[str], set[int]]]) -> float:
    """The F1 of all borders that are found, which are right only at the very step."""
    found = [{part.start for part in find_sections(steps).parts[1:]} for steps, _ in thoughts]
    right = sum(len(one & borders) for one, (_, borders) in zip(found, thoughts, strict=True))
    return 2 * right / (sum(map(len, found)) + sum(len(borders) for _, borders in thoughts))


def kinds(*steps: str) -> list[tuple[int, str]]:
    return [(part.start, part.kind.value) for part in find_sections(steps).parts]


def test_borders_of_synthetic_long_thoughts_are_found():
    assert f1(list(long_thoughts(seed=7, count=12))) >= 0.9


def steps_of(row: dict[str, Any]) -> list[str]:
    if "modified_process" in row:
        return list(row["modified_process"])
    if "model_output_step_format" in row:
        return [" ".join(step) for step in row["model_output_step_format"]]
    return [step["completions"][step["chosen_completion"] or 0]["text"] for step in row["label"]["steps"]]


def test_borders_of_twenty_long_solutions_divided_by_hand_are_found(data: Path):
    thoughts = []
    for line in BY_HAND.strip().splitlines():
        place, borders = line.split(":")
        file, row = place.replace("prmbench/", "prmbench/prm800k_train_p1_first400_4o_").split()
        text = (data / file).read_text(encoding="utf-8").splitlines()[int(row)]
        thoughts.append((steps_of(json.loads(text)), {int(number) - 1 for number in borders.split()}))
    assert f1(thoughts) >= 0.75


def test_sections_begin_where_the_first_words_of_a_step_say_so():
    assert kinds(
        "We are given the sum of the numbers.",
        "It is 12.",
        "Let's try $x = 4$.",
        "Then the other one is 8.",
        "Wait, that is not what they ask for.",
        "Let me redo this with the product.",
        "It is 32.",
        "Let me check that it is even.",
        "# Answer\n\n32",
    ) == [(0, "computation"), (2, "approach"), (4, "doubt"), (5, "repair"), (7, "check"), (8, "answer")]


def test_words_of_other_languages_begin_sections():
    for language, text in {
        "de": "Das ist die Summe.|Moment, das stimmt nicht.|Ich habe mich verrechnet.|Zur Probe: 4.|Antwort: 5",
        "fr": "Nous avons la somme.|Attends, c'est bizarre.|Je me suis trompé.|Vérifions le produit.|Réponse : 5",
        "es": "El total es par.|Espera, eso es raro.|Me equivoqué en la suma.|Comprobemos el total.|Respuesta: 5",
        "zh": "我们先求和。|等等, 这里有问题。|我算错了, 重新计算。|验证一下结果。|答案: 5",
    }.items():
        found = find_sections(text.split("|"))
        assert found.language == language
        assert [part.kind.value for part in found.parts] == ["computation", "doubt", "repair", "check", "answer"]


def test_a_language_without_rules_gives_one_section_and_says_so():
    for steps in (
        ["Solis 1: saskaitām.", "Pagaidi, tas nav pareizi."] * 10,
        ["合計を求めます。", "待って、違う。"],
        ["$x = 1$", "7"],
    ):
        found = find_sections(steps)
        assert (found.language, [(part.start, part.stop) for part in found.parts]) == ("", [(0, len(steps))])


def test_a_heading_begins_a_section():
    assert kinds("We add the numbers.", "That is 4.", "## The second part\nIt is 5.", "**Check**\nIt is.") == [
        (0, "computation"),
        (2, "approach"),
        (3, "check"),
    ]
