import re

import pytest

from stepsight.app.markup.marking import without_number
from stepsight.app.markup.text import duration, plain_text, sentence, text_html
from tests.app.elements import read
from tests.cases import each
from tests.cost import is_linear


def pieces(text):
    """Plain text as it is, inline maths as `«x»`, display maths as `«« x »»`."""
    return re.sub(
        r'<span class="math"( data-display="1")? data-source="[^"]*">([^<]*)</span>',
        lambda found: f"««{found[2]}»»" if found[1] else f"«{found[2]}»",
        text_html(text),
    )


@each(
    "text",
    [
        "$1.24",
        "$5 and $6",
        "it costs $17 each and a bag for $12, and pays with $300",
        "between $10-$15",
        "$ 5 and 6 $",
        "US$ 5 or $7",
        "a lone $ sign",
        "$",
        "$$",
        "$$$$",
        "from $3\nto 4$",
    ],
)
def test_prices_and_lone_signs_stay_text(text):
    assert text_html(text) == text


@each(
    "text, expected",
    [
        ("so $x = 2$.", "so «x = 2»."),
        # Nothing but a formula needs no dollar signs.
        (r"\frac43", r"«\frac43»"),
        (r"\text{none} \ge 2x", r"«\text{none} \ge 2x»"),
        (r"The \frac12 is in C:\new folder", r"The \frac12 is in C:\new folder"),
        ("$x_1$, $x_2$ and $x_3$", "«x_1», «x_2» and «x_3»"),
        ("$x$ costs $5", "«x» costs $5"),
        ("a price of $5, and $x$", "a price of $5, and «x»"),
        (r"\$260 after $25\%$ off", r"$260 after «25\%» off"),
        (r"\$5, then $ 6 $ and \$7", "$5, then $ 6 $ and $7"),
        (r"$\$5$", r"«\$5»"),
        # A bare percent sign begins no comment.
        (r"$20% \times 50 = 10$", r"«20\% \times 50 = 10»"),
        (r"\( 5% \) \[ 0.8 = 80% = \frac45 \]", r"«5\%» ««0.8 = 80\% = \frac45»»"),
        (r"$$\text{25% fee} \\% 5\%$$", r"««\text{25\% fee} \\\% 5\%»»"),
        (
            "\\begin{align*}x &= 25% \\\\\n&= 10%\\end{align*}",
            "««\\begin{align*}x &amp;= 25\\% \\\\\n&amp;= 10\\%\\end{align*}»»",
        ),
        (r"\(x\) and \( y \)", "«x» and «y»"),
        (r"\[ x^2 \]", "««x^2»»"),
        ("$$x\n+ y$$", "««x\n+ y»»"),
        (r"\[ a \\[2pt] b \]", r"««a \\[2pt] b»»"),
        (r"\begin{align*}a &= b\end{align*}", r"««\begin{align*}a &amp;= b\end{align*}»»"),
        (r"\begin{align}\begin{aligned}a\end{aligned}\end{align}!", "««ALL»»!"),
        (r"\(a\)\[b\]$c$ $$d$$", "«a»««b»»«c» ««d»»"),
        (r"M = \begin{pmatrix}1 & 2\end{pmatrix}.", r"M = «\begin{pmatrix}1 &amp; 2\end{pmatrix}»."),
        (r"\[\begin{cases}a\end{cases}\]", r"««\begin{cases}a\end{cases}»»"),
        ('[asy]label("$x$", \\$2); [/asy] $y$', "[asy]label(&#34;$x$&#34;, \\$2); [/asy] «y»"),
    ],
)
def test_maths_is_found(text, expected):
    source = text.rstrip("!")
    assert pieces(text) == expected.replace("ALL", source)


@each(
    "text",
    [
        r"\[ x",
        r"\( x",
        r"[asy] x",
        r"\begin{pmatrix} x",
        "$x",
        "$$x",
        r"x \] y",
        r"\begin{align} x",
        r"\begin{align} x \end{gather}",
        r"\\(x\\)",
    ],
)
def test_an_unclosed_formula_stays_text(text):
    assert pieces(text) == text


def test_an_unclosed_opener_does_not_hide_what_follows():
    assert pieces(r"\[ a and \[b\]") == r"\[ a and ««b»»"
    assert pieces(r"\( a and $b$") == r"\( a and «b»"
    assert pieces(r"\begin{align} \begin{gather}b\end{gather}") == (
        r"\begin{align} ««\begin{gather}b\end{gather}»»"
    )


def test_a_very_long_formula_stays_text():
    short, long = "x" * 3900, "x" * 4100
    assert pieces(rf"\[{short}\]") == f"««{short}»»"
    assert pieces(rf"\[{long}\] and $y$") == rf"\[{long}\] and «y»"


def test_the_source_is_kept_for_what_cannot_be_rendered():
    (span,) = read(text_html(r'say \(x < "5%"\).')).all("span")
    assert (span.text, span["data-source"]) == (r'x < "5\%"', r'\(x < "5%"\)')


@pytest.mark.parametrize("text", ["a & b < c", "\"quoted\" & 'single'", "line\nbreak", "∑ 三 🙂 \u202e"])
def test_other_text_comes_back(text):
    assert read(text_html(text)).text == text


OPENERS = [
    "\\[",
    "\\(",
    "\\begin{align}",
    "$$",
    "$$ ",
    "$ ",
    "$a",
    "\\[\\(",
    "\\begin{align}\\begin{gather}",
    "\\",
    "[asy]",
    "\\begin{array}",
]


@each("opener", [*OPENERS, f"\\[{'x' * 5000}\\]", "\\text{a}"])
def test_many_openers_take_linear_time(opener):
    assert is_linear(lambda size: text_html(opener * (size // len(opener))), 3_900)
    assert is_linear(lambda size: text_html(opener * (size // len(opener))), 50_000)


@each("text", ["there is no dataset", "the trace has 3 tokens", "theirs: 3 traces", "a on sums", ""])
def test_a_message_begins_with_a_capital_letter_unless_with_a_name(text):
    capital = text.startswith(("there ", "the "))
    assert sentence(text) == (text.capitalize() if capital else text)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "1 s"),
        (59, "59 s"),
        (60, "1 min"),
        (61, "2 min"),
        (3540, "59 min"),
        (3600, "1 h 0 min"),
        (7500, "2 h 5 min"),
    ],
)
def test_durations_are_rounded_up(seconds, words):
    assert duration(seconds) == words


@each(
    "text, expected",
    [
        (r"$\frac{126}{2}$ is 63, and \(2 \cdot 53\) is 106", "126/2 is 63, and 2 · 53 is 106"),
        (r"$$\left(\frac{a+b}{2}\right) \le \sqrt{16}$$", "((a+b)/2) ≤ √16"),
        ("$5 and $6", "$5 and $6"),
    ],
)
def test_formulas_are_readable_without_being_drawn(text, expected):
    assert plain_text(text) == expected


def test_a_step_is_numbered_once():
    assert without_number(text_html("2. So <3"), 2) == "So &lt;3"
    for text in ("3. So", "2.5 m", "2."):
        assert without_number(text_html(text), 2) == text
