import random
from dataclasses import replace

from stepsight.app.score.result import ADDRESS, curl_lines, exports_html, python_snippet
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.models.placement import Placement
from stepsight.core.scores import Thresholds
from tests.app.elements import read
from tests.app.entries import typed

FORM = typed("What is 2 + 3?", "1. 2 + 3 = 5.\n2. So 5.", ("tiny", "tiny-causal"), 0.4, 0.2)


def exports(evaluators, form=FORM, **options):
    return read(exports_html(evaluators, form.trace, form.evaluators, form.thresholds, form.token(), **options))


def test_links_lead_to_the_result_its_evidence_and_its_files(evaluators):
    links = {link.text: link["href"] for link in exports(evaluators).all("a")}
    token = FORM.token()
    assert links == {
        "Link to this result": f"/?s={token}",
        "Evidence": f"/evidence?s={token}",
        "Download JSON": f"/score/result.json?s={token}",
        "Download CSV": f"/score/result.csv?s={token}",
    }


def test_the_code_is_what_the_snippets_say(evaluators):
    python, curl = (code.text for code in exports(evaluators).all("code"))
    specs = {name: evaluators.spec(name) for name in FORM.evaluators}
    assert python == python_snippet(FORM.trace, specs, FORM.thresholds)
    assert curl.splitlines() == curl_lines(FORM.trace, FORM.evaluators)


def test_the_script_finds_what_it_keeps_up_to_date(evaluators):
    # A step that says what the program says must not be taken for it.
    form = typed("q", f"thresholds = Thresholds(validity=0.4, redundancy=0.2)\n{ADDRESS}", ("tiny",), 0.4, 0.2)
    page = exports(evaluators, form)
    python, curl = page.all("code")
    assert [span.text for span in python.all("span")] == ["0.4", "0.2"]
    assert python.text == python_snippet(form.trace, {"tiny": evaluators.spec("tiny")}, Thresholds(0.4, 0.2))
    assert python.text.rindex("Thresholds(") > python.text.index("evaluators = {")
    assert [span.text for span in curl.all("span")] == [ADDRESS]


def test_a_read_only_page_has_no_form_and_tells_no_folder(evaluators, tiny):
    page = exports(evaluators, read_only=True)
    assert page.all("form") == []
    assert str(tiny) not in page.text
    assert "'tiny': 'tiny'" in page.text
    saving = exports(evaluators)
    assert saving.one("form", cls="save").one("input")["value"] == "saved"
    assert str(tiny) in saving.text


def test_the_type_of_the_weights_comes_back_with_the_code(tiny):
    placed = Evaluators([tiny, "mini-causal"], shipped=False, place=Placement(dtype="bfloat16"))
    form = replace(FORM, evaluators=("tiny (bfloat16)", "mini-causal (bfloat16)"))
    assert f"'tiny (bfloat16)': ({str(tiny)!r}, 'bfloat16')" in exports(placed, form).text
    public = exports(placed, form, read_only=True).text
    assert "'tiny (bfloat16)': ('tiny', 'bfloat16')" in public
    assert "'mini-causal (bfloat16)': ('mini-causal', 'bfloat16')" in public
    # One that was asked for in float32 may be stored in another type.
    asked = Evaluators([tiny], shipped=False, place=Placement(dtype="float32"))
    assert f"'tiny': ({str(tiny)!r}, 'float32')" in exports(asked, replace(FORM, evaluators=("tiny",))).text


def test_a_solution_too_long_for_a_link_says_how_to_go_on(evaluators):
    draw = random.Random(0)
    noise = "".join(chr(draw.randrange(0x4E00, 0x9FFF)) for _ in range(8000))
    page = exports(evaluators, typed("q", noise, ("tiny",)))
    assert page.all("a") == []
    assert "Too long for a link: save it to a dataset." in page.text
