import pytest

from stepsight.app.markup.markdown import markdown_html
from stepsight.app.markup.marking import excerpt, has_hit, marked_html, marked_markdown
from stepsight.app.markup.text import text_html
from tests.app.elements import read
from tests.app.injection import PAYLOADS
from tests.cases import each


def marks(text, wanted):
    return [mark.text for mark in read(marked_html(text_html(text), wanted)).all("mark")]


@each(
    "text, wanted, expected",
    [
        ("Half of a half is a quarter.", "half", ["Half", "half"]),
        ("Half of a half is a quarter.", " a half ", ["a half"]),
        ("Nothing here.", "half", []),
        ("a < b & c", "< b &", ["< b &"]),
        # No part of an entity or a tag is a hit.
        ("a < b & c", "lt", []),
        ("a $x$ b", "span", []),
        ("a.c abc", "a.c", ["a.c"]),
        ("", "x", []),
        ("text", " ", []),
        ("Nora’s y\u22124, touche\u0301", "nora's Y-4", ["Nora’s y\u22124"]),
        ("6\u200b·6, touche\u0301", "touché", ["touche\u0301"]),
        ("6\u200b·6, touche\u0301", "6*6", ["6\u200b·6"]),
    ],
)
def test_hits_are_marked_whatever_their_case(text, wanted, expected):
    assert marks(text, wanted) == expected


def test_a_formula_is_marked_whole_and_stays_one():
    html = marked_html(text_html(r"So $\frac{1}{2} + x$ is half."), r"\frac{1}{2}")
    (mark,) = read(html).all("mark")
    assert mark.one("span", cls="math").text == r"\frac{1}{2} + x"


def test_a_hit_may_reach_into_a_formula():
    # As it was written: the signs of the formula are part of the text that is searched.
    assert marks("add to $-5$ and 6", "to $-5$ and") == ["to ", "-5", " and"]
    assert marks("add to $-5$ and 6", "to -5") == []


@each("text", PAYLOADS)
def test_marks_keep_everything_escaped(text):
    wanted = text.strip()[:3]
    page = read(marked_html(text_html(text), wanted))
    assert {element.tag for element in page.all()} <= {"span", "mark"}
    assert page.text == read(text_html(text)).text


@pytest.mark.parametrize(
    ("text", "wanted", "html"),
    [
        ("**Area:** nine", "", "<strong>Area:</strong> nine"),
        ("**Area:** nine", "area", "<strong><mark>Area</mark>:</strong> nine"),
        # A hit that goes on behind the emphasis is marked on both sides of its end.
        ("**Area:** nine", "area: nine", "<strong><mark>Area:</mark></strong><mark> nine</mark>"),
        ("```\nif a:\n    b = 1\n```", "b =", "<pre>if a:\n    <mark>b =</mark> 1</pre>"),
        ("run `a_1 < 2`", "< 2", "run <code>a_1 <mark>&lt; 2</mark></code>"),
        # The name of a tag is no text.
        ("**Area:** a code", "strong", "<strong>Area:</strong> a code"),
        # What stands among the signs of the Markdown is shown there.
        ("**Area:** nine", "**area", "<mark>**Area</mark>:** nine"),
        ("[the rule](https://example.org/rule)", "rule", "[the <mark>rule</mark>](https://example.org/<mark>rule</mark>)"),
    ],
)  # fmt: skip
def test_markdown_is_rendered_around_hits(text, wanted, html):
    assert marked_markdown(text, wanted) == html


def test_a_formula_within_markdown_is_marked_whole():
    html = marked_markdown(r"**so $x_1 * y_1$ holds** and *then*", "y_1$ h")
    formula = markdown_html("$x_1 * y_1$")
    assert html == f"<strong>so <mark>{formula}</mark><mark> h</mark>olds</strong> and <i>then</i>"


def test_has_hit():
    assert has_hit("Half of it", "HALF")
    assert not has_hit("Half of it", "third")
    assert not has_hit("Half of it", " ")


def test_a_letter_with_an_accent_is_another_letter_however_it_is_composed():
    for text in ("\xc5ngstr\xf6m", "A\u030angstro\u0308m"):
        assert has_hit(text, "\xe5ngstr\xf6m")
        assert not has_hit(text, "a")
        assert not has_hit(text, "om")
    # Which no other letter stands for.
    assert has_hit("x\u0304 is 5", "X")


def test_an_excerpt_is_the_beginning_cut_at_a_space():
    assert excerpt("one two three", 20) == "one two three"
    assert excerpt("one two three", 9) == "one two …"
    assert excerpt("x" * 30, 9) == "x" * 9 + " …"


def test_an_excerpt_goes_to_the_first_hit():
    text = "start " + "word " * 40 + "here is the needle in it"
    found = excerpt(text, 60, "needle")
    assert found.startswith("… word")
    assert "needle" in found
    assert len(found) <= 64
    assert excerpt(text, 60, "start").startswith("start word")
    assert excerpt(text, 60, "nowhere").startswith("start word")


def test_an_excerpt_cuts_no_formula_in_two():
    assert excerpt("The sum $a + b + c$ is known.", 14) == "The sum …"
    assert excerpt(r"It costs \$5 and then more", 17) == r"It costs \$5 and …"
    text = "word " * 20 + "$a + needle + b$ " + "word " * 20
    assert "$a + needle + b$" in excerpt(text, 60, "needle")
    # The formula is longer than the excerpt, and what is looked for is in it.
    assert "$a + needle + b + c + d$" in excerpt("word " * 20 + "$a + needle + b + c + d$ end", 45, "needle")
    assert excerpt("$" + "a " * 40 + "$ end", 20) == "$" + "a " * 40 + "$ …"
    assert excerpt("$" + "a " * 200 + "$ end", 20) == "$a" + " a" * 9 + " …"


def test_an_excerpt_of_one_long_word_still_shows_the_hit():
    assert excerpt("x" * 300 + "needle" + "x" * 300, 60, "needle") == "… " + "x" * 40 + "needle" + "x" * 14 + " …"
