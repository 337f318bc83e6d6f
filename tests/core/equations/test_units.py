"""Units that convert."""

from tests.cases import each
from tests.core.equations.steps import checks, failing

TRUE = (
    "3 hours + 15 minutes = 195 minutes", "60 km/h × 45 min = 45 km", "9 pages per day * 2 weeks = 126 pages",
    "240 minutes / 60 = 4 hours", "4 weeks * 7 = 28 days", "30 cents/minute * 3 hours = $54",
    "5 kb/s * 20 s = 100 kb", "60 mph × 20 min = 20 miles", "9 ft/s × 2 min = 1080 ft", "8 MB/s × 1 min = 480 MB",
    "1 GB - 24 MB = 1000 MB", "25 + 35 = 1 hour", "1/3 + 1/6 = 30 minutes",
)  # fmt: skip
WRONG = {
    # 40 + 20 + 2 · 60 = 180
    "40 minutes to mix the dough + 20 minutes + 2 hours to rest = 62 minutes": "180",
    "40 km/h × 2 days = 80 km": "1920",
    # 2 · 5280 ft / 176 ft a minute = 60 minutes
    "2 miles / 176 feet per minute = 0.5 hours": "1",
    "He grew 6 inches, so he is 5 + 6 = 11 feet tall.": "5.5",
    # 36 · 3600 kb an hour
    "36 kb/s / 3600 s/h = 0.02 kb/h": "129,600",
    "40 mph × 30 minutes = 30 miles": "20",
    # A tenth, as of dimes in a dollar, or of millimetres in a centimetre.
    "He makes 2250 * 52 = $11,700 a year.": "117,000",
    "7 × 5 = 3.5 km": "35",
    "$42_{10} = 50_{8}$": "42",
    # What is worked out is a whole chain, whatever it "should" be.
    "It should be 90 - (30/100) * 90 = 90 - 30 = 60 degrees": "63",
    "a slope of $\\frac{0-(-6)}{-6-0} = \\frac{6}{6}$": "-1",
}
ELSEWISE = (
    "3 hours * 2 weeks = 6 hours", "$4 per pound * 8 ounces = $2", "6 inches + 6 inches of the 2 feet = 1 foot",
    "From 10 p.m. to 6 a.m. is 12 - 10 = 2 hours before midnight and 6 after.",
    "12 feet 3 inches + 9 inches = 13 feet", "3 × 4 = 4 yards of cloth", "Of 40 dimes, each has half: 40 / 2 = $2",
)  # fmt: skip


@each("text", TRUE)
def test_units_are_converted(text):
    found = checks(text)
    assert all(check.holds for check in found)


@each("text, right", WRONG.items())
def test_a_wrong_conversion_fails(text, right):
    assert [found[2] for found in failing(text)] == [right]


@each("text", ELSEWISE)
def test_a_unit_that_may_be_another_states_nothing(text):
    assert failing(text) == []
