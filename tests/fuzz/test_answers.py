"""Generated final answers whose value is known, in the notations of many programs."""

from fractions import Fraction

from stepsight.training.experiments.answers import AnswerComparer, normalised
from tests.fuzz.attack import COUNT
from tests.seeds import chance


def notations(whole, over, under, rng):
    """Notations of a mixed number."""
    value = Fraction(whole * under + over, under)
    space = rng.choice([" ", "\xa0", r"\ ", r"\,", "  ", "\u2009"])
    return [
        f"{whole}{space}{over}/{under}",
        rf"{whole}{space}\frac{{{over}}}{{{under}}}",
        rf"${whole}\tfrac{{{over}}}{{{under}}}$",
        f"{value}",
        rf"\boxed{{{whole} {over}/{under}}}",
        rf"\frac{{{value.numerator}}}{{{value.denominator}}}",
        f"{value.numerator * 100}/{value.denominator}%",
        f"{whole} {over}/{under} {rng.choice(['cups', 'miles', 'hours'])}",
    ]


def test_generated_answers_are_the_same_exactly_if_their_values_are(monkeypatch):
    monkeypatch.setattr("stepsight.training.experiments.answers.find_spec", lambda name: None)
    with AnswerComparer() as answers:
        for number in range(max(COUNT, 300)):
            rng = chance(number)
            whole, under = rng.randint(1, 60), rng.randint(2, 12)
            over = rng.randint(1, under - 1)
            texts = notations(whole, over, under, rng)
            first, second = rng.choice(texts), rng.choice(texts[:-1])
            assert answers.same(first, second), (first, second)
            # The digits without the space, the sum and the product of the parts are other numbers.
            for wrong in (
                f"{whole}{over}/{under}",
                f"{Fraction(whole * over, under)}",
                f"{whole} {over + under}/{under}",
            ):
                if normalised(wrong) != str(Fraction(whole * under + over, under)):
                    assert not answers.same(first, wrong), (first, wrong)
