"""The figures of a campaign's agreement as HTML: what each means in words, and the matrix of pairs."""

from collections.abc import Mapping
from html import escape

from app.relabel.agreement_tables import FIGURES
from core.metrics.value import Value
from training.tables import Kind, Table, show

# Krippendorff, Content Analysis (2nd edition, 2004), page 241.
RELIABLE, TENTATIVE = 0.8, 0.667
# Of more people than that, pairs are told in the table alone.
_MOST_PEOPLE = 24

_MEANING = dict(
    zip(
        FIGURES,
        (
            "neg against pos counts as further apart than either against neu",
            "any two different labels count as equally far apart",
            "neg against neu and pos together",
            "which step is the first that is neg, or that none is",
        ),
        strict=True,
    )
)


def figures_html(table: Table) -> str:
    """The rows of `agreement_tables.overall_table`, each with what it means."""
    return f'<div class="figures">{"".join(_figure(row) for row in table.rows)}</div>'


def _figure(row: tuple[object, ...]) -> str:
    name, alpha, agreeing, units, unit, _ = row
    assert isinstance(alpha, Value)
    assert isinstance(agreeing, Value)
    shown = show(alpha, Kind.NUMBER)
    interval = f"<small>95 %: {escape(shown.interval)}</small>" if shown.interval else ""
    pairs = ""
    if agreeing.exists:
        pairs = f"<p>{show(agreeing, Kind.PERCENT).text} % of pairs agree, on {units:,} {unit}.</p>"
    return f"""<section class="card"><h3>{escape(str(name))}</h3><p class="hint">{_MEANING[str(name)]}</p>
<p class="big">{shown.text}{interval}</p><p class="says">{escape(meaning(alpha))}</p>{pairs}</section>"""


def meaning(alpha: Value) -> str:
    """What an alpha allows, by Krippendorff's rule, or why there is none."""
    if not alpha.exists:
        return f"No alpha: {alpha.reason}."
    if alpha.number < TENTATIVE:
        return f"Too low to draw conclusions from (below {TENTATIVE:.3f})."
    bar = RELIABLE if alpha.number >= RELIABLE else TENTATIVE
    doubt = f" The interval reaches below {bar:.3f}." if alpha.low < bar else ""
    if alpha.number >= RELIABLE:
        return f"Reliable ({RELIABLE:.3f} or more).{doubt}"
    return f"Good for tentative conclusions ({TENTATIVE:.3f} to {RELIABLE:.3f}).{doubt}"


def matrix_html(table: Table) -> str:
    """Cohen's kappa of every two people, from `people_tables.pair_table`; "" where they are too many or too few."""
    places = {column.key: place for place, column in enumerate(table.columns)}
    pairs = {(str(row[0]), str(row[1])): row for row in table.rows}
    people = sorted({name for pair in pairs for name in pair})
    if not 2 < len(people) <= _MOST_PEOPLE:
        return ""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in people)
    rows = ""
    for one in people:
        cells = "".join(_pair(pairs, places, one, other) for other in people)
        rows += f'<tr><th scope="row">{escape(one)}</th>{cells}</tr>'
    return f"""<p class="caption">Cohen's kappa of every two people, and the steps that both labelled</p>
<div class="heat pairs scroll" role="region" aria-label="Cohen's kappa by pairs" tabindex="0"><table>
<thead><tr><td></td>{head}</tr></thead><tbody>{rows}</tbody></table></div>"""


def _pair(
    pairs: Mapping[tuple[str, str], tuple[object, ...]], places: Mapping[str, int], one: str, other: str
) -> str:
    row = pairs.get((one, other)) or pairs.get((other, one))
    if row is None:
        return "<td></td>"
    kappa, steps = row[places["kappa"]], row[places["steps"]]
    assert isinstance(kappa, Value)
    if not kappa.exists:
        return f'<td class="alone" title="{escape(kappa.reason)}">–<small>{steps:,}</small></td>'
    return f'<td style="--x:{max(0.0, kappa.number):.2f}">{kappa.number:.2f}<small>{steps:,}</small></td>'
