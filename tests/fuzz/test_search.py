"""Texts and searches whose signs are written in other ways: what looks the same is found and marked."""

import re

import numpy as np

from stepsight.core.text.signs import pattern, searchable
from stepsight.core.trace import Trace
from stepsight.storage.traces.search import find_text
from tests.fuzz.attack import COUNT
from tests.fuzz.mutations import retyped
from tests.seeds import chance
from tests.storage.samples import add

WORDS = (
    "Janet's", "ducks lay", "2 + 3", "x-3 = 2", "10 000 eggs", "café", "naïve", '"so"', "9:00", "4 * 5", "x^2",
    "50%", "déjà-vu", "Ångström", r"\frac{1}{2}", "a_b", "Größe", "задача", "数学", "it's 5", "3*4 = 12", "(-2)",
    "x\u0304 is",
)  # fmt: skip


def spaced(text, rng):
    """The text with other white space, where it means nothing to a reader."""
    for sign in "+-=*(),:%":
        if rng.random() < 0.3:
            text = re.sub(
                rf"\s*{re.escape(sign)}\s*",
                lambda _, sign=sign: rng.choice(["", " "]) + sign + rng.choice(["", " ", "\n"]),
                text,
            )
    return re.sub(r"\s+", lambda _: rng.choice([" ", "  ", "\n", " \t"]), text) if rng.random() < 0.3 else text


def test_texts_are_found_however_they_are_typed(store):
    rng = chance("texts")
    texts = [" ".join(rng.choices(WORDS, k=rng.randint(1, 4))) for _ in range(40)]
    stored = [spaced(retyped(text, rng), rng).strip() for text in texts]
    add(store, [Trace.of(text, ["§"], id=f"§{number}") for number, text in enumerate(stored)])
    ids = np.arange(1, len(texts) + 1)
    finds = 0
    for number in range(max(20, COUNT // 3)):
        rng = chance(f"search:{number}")
        whole = rng.choice((*texts, *WORDS))
        start = rng.randrange(len(whole))
        part = whole[start : start + rng.randint(1, 8)].strip()
        if not part:
            continue
        wanted = retyped(rng.choice([part, part.lower(), part.upper().replace("SS", "ß")]), rng)
        wanted = spaced(wanted, rng)
        expected = [searchable(part).strip().lower() in searchable(text).lower() for text in texts]
        with store.read() as session:
            found = find_text(session, ids, wanted).tolist()
        assert found == expected, (number, wanted, [texts[i] for i in range(40) if found[i] != expected[i]])
        hit = pattern(wanted)
        marked = [hit.search(text) is not None for text in stored]
        assert marked == expected, (number, wanted, [stored[i] for i in range(40) if marked[i] != expected[i]])
        finds += sum(expected)
    assert finds > COUNT / 3
