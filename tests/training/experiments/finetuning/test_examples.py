from stepsight.training.experiments.finetuning.examples import IGNORED, build_examples, prompt_ids
from stepsight.training.experiments.finetuning.models import load_text_tokenizer

PROMPT = "Q: {query}\nA: "


def test_the_response_and_its_end_are_learnt_and_the_prompt_is_not(start):
    tokenizer = load_text_tokenizer(start)
    (example,), left_out = build_examples([("2 + 2?", "4.")], tokenizer, PROMPT, False, 100)
    asked = prompt_ids(tokenizer, PROMPT, "2 + 2?")
    assert left_out == 0
    assert list(example.ids[: len(asked)]) == asked
    assert tokenizer.decode(example.ids) == "Q: 2 + 2?\nA: 4.<end>"
    learnt = [label for label in example.labels if label != IGNORED]
    assert tokenizer.decode(learnt) == "4.<end>"
    assert example.labels[: len(asked)] == (IGNORED,) * len(asked)
    (whole,), _ = build_examples([("2 + 2?", "4.")], tokenizer, PROMPT, True, 100)
    assert whole.labels == whole.ids == example.ids


def test_a_longer_row_is_left_out_and_counted_never_cut(start):
    tokenizer = load_text_tokenizer(start)
    rows = [("2?", "4."), ("2?", "4. " * 20)]
    (short, long), _ = build_examples(rows, tokenizer, PROMPT, False, 1000)
    found, left_out = build_examples(rows, tokenizer, PROMPT, False, len(long.ids) - 1)
    assert (found, left_out) == ([short], 1)
    assert build_examples(rows, tokenizer, PROMPT, False, len(long.ids)) == ([short, long], 0)


def test_a_query_may_hold_braces(start):
    tokenizer = load_text_tokenizer(start)
    asked = prompt_ids(tokenizer, PROMPT, r"\frac{1}{2} {query}")
    assert tokenizer.decode(asked) == "Q: \\frac{1}{2} {query}\nA: "
