import random
import unicodedata

from stepsight.core.text.signs import INVISIBLE, PLAIN, comparable, is_blank, plain
from tests.cases import each

PAIRS = {
    "Maya’s": "Maya's", "4\xa0+\u202f9": "4 + 9", "y−7": "y-7", "y‑7": "y-7", "re\u0301sume\u0301": "résumé",
    "ｙ＝４": "y=4", "6\u200b·7": "6*7", "8÷2": "8/2", "٤٢": "42", "४२": "42", "“so”": '"so"', "wo\xadrd": "word",
    "３．５": "3.5", "是。": "是.", "１：２": "1:2", "\ufeff5": "5", "x²": "x²",
}  # fmt: skip


@each("written", PAIRS)
def test_a_text_is_compared_in_plain_signs(written):
    assert comparable(written) == PAIRS[written]


def test_plain_signs_keep_places_and_comparable_texts_stay_as_they_are():
    rng = random.Random(0)
    signs = [*map(chr, PLAIN), *INVISIBLE, *"aé\u0301x2 +-\n²½数"]
    for _ in range(300):
        text = "".join(rng.choices(signs, k=12))
        assert len(plain(text)) == len(text)
        assert plain(plain(text)) == plain(text)
        once = comparable(text)
        assert comparable(once) == once == unicodedata.normalize("NFC", once)


@each("text, blank", [("", True), (" \u200b\ufeff\n\xa0", True), ("\u200b.", False), ("−", False)])
def test_a_text_of_nothing_visible_is_blank(text, blank):
    assert is_blank(text) == blank
