"""Every page of stores whose texts hold half surrogates, NUL, signs that turn the direction of a line, formulas and
Markdown that never end, or a megabyte in a line: what is unfit is refused where it comes in, the rest is shown."""

from contextlib import suppress
from urllib.parse import urlencode

import pytest

from stepsight.app.score.entered import Entered
from stepsight.core.errors import UserError
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.trace import Trace
from stepsight.storage.changes import find_thing
from stepsight.storage.database.store import open_store
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.labelling.adjudication import decide
from stepsight.storage.labelling.disputes import open_dispute
from stepsight.storage.people.users import Role, local_user
from tests.app.client import PAGE, asking
from tests.app.web.test_access import EXPECTED, concrete
from tests.fuzz.attack import COUNT
from tests.seeds import chance
from tests.storage.jobs.samples import send
from tests.storage.labelling.labelled_sums import item_of
from tests.storage.labelling.samples import campaign, do, key, label_all, person, take
from tests.storage.samples import add, evaluator, triangle

UNFIT = ("\ud800", "\udfff", "\x00")
_PIECES = (
    *UNFIT, "\\ud800", "&#xd800;", "\u202e", "\u2066\u200f", "\x1b[31m", "\ufffe", "\U0010ffff", "e\u0301",
    "\u2028", "\r\n", "<b>", "]]>", "$", "$$\\frac{", "\\[", "\\text{", "**", "`", "| a |\n|---|\n", '"', "'", "%",
    "&", "{{", "x", " ",
)  # fmt: skip
PATHS = [concrete(route[4:]) for route in EXPECTED if route.startswith("GET ") and "/demo" not in route]


@pytest.mark.parametrize("number", range(max(2, COUNT // 20)))
def test_every_page_is_shown_or_refused_with_a_reason(number, tmp_path, evaluators):
    with open_store(str(tmp_path / "store.db")) as store, asking(store, evaluators) as client:
        queries = sown(store, chance(f"texts:{number}"))
        for path in PATHS:
            for query in map(urlencode, queries):
                response = client.get(f"{path}?{query}", headers=PAGE, follow_redirects=False)
                assert response.status_code < 500 or response.status_code == 503, (path, query, response.text[:500])


def sown(store, rng):
    """Fill an empty store with such texts, and return the queries that lead to them."""

    def sow(put, *given):
        for _ in range(40):
            text = "".join(rng.choices(_PIECES, k=rng.randint(1, 6)))
            text += rng.choice("x $\u202e<\\") * (1_000_000 if rng.random() < 0.1 else 1)
            with suppress(UserError):
                result = put(text, *given)
                assert not any(sign in text for sign in UNFIT), (put, text[:100])
                return result
        return put("plain", *given)

    add(store, [sow(_trace, name, rng.choice([["pos", "neg"], None])) for name in ("two", "three", "one")])
    made = sow(lambda text: campaign(store, None, name=text, guideline=text, overlap=2))
    me, eve, stored = local_user(store), person(store, "eve", Role.ADJUDICATOR), add(store, [])
    named = sow(lambda text: evaluator(store, text))
    save_judgments(store, named.id, [Judgment(trace, Mode.HINDSIGHT, triangle(3)) for trace in stored])
    for name in ("ann", "bob"):
        task = take(store, made, user := sow(lambda text, name: person(store, name + text), name))
        for act in (("comment", 0), ("correction", 1), ("flag", None)):
            sow(lambda text, slot, *act: do(store, slot, user, *act, text), task.slot, *act)
        label_all(store, task, user, ["pos", "neg"])
    item = item_of(store, made, "two")
    sow(lambda text: decide(store, made.id, item, 0, "pos", text, eve, key()))
    sow(lambda text: open_dispute(store, stored[0].trace_id, 0, "neu", text, me))
    sow(lambda text: send(store, me.id, b"[]", text))
    add(store, stored[:1], "other")
    sow(lambda text: find_thing("dataset", {"dataset": "other"}).rename(store, text))
    token = Entered.of(stored[0], ("tiny",)).token() or ""
    about = {"dataset": "sums", "evaluator": named.name}
    return [{}, about, about | {"q": "x"}, {"trace": 1, "evaluator": named.name}, {"s": token}, {"campaign": 1}]


def _trace(text, name, labels):
    steps, meta = [text, [text, "1 + 1 = 3."]], {"question_type": text[:90], text[:50]: text}
    return Trace.of(text, steps, labels, id=name, meta=meta)
