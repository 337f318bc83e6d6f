"""Notations that strangers bring: what is true or states nothing is never flagged, and what is wrong still is."""

from tests.cases import each
from tests.core.equations.steps import checks, failing

KINDS = {
    "a decimal comma": (
        "7,5 · 6 = 45", "0,25 + 0,75 = 1", "€ 8,40 − € 2,10 = € 6,30", "2.450,75 + 0,25 = 2.451",
        "$4{,}5 · 2 = 9$",
        "2,500 kg × 3 = 7,500 kg", "1,250 × 4 = 5", "3.000 - 750 = 2.250",
    ),
    "marks between thousands": ("7'000 · 3 = 21'000", "4’250 + 750 = 5’000", "12\u202f000 / 4 = 3\u202f000"),
    "cents and dollars": (
        "8 × 25 cents = $2", "75¢ + 75¢ = $1.50", "$0.40 × 5 = 200 cents", "$3 - 45¢ = $2.55",
        "£2 - 80p = 120p",
        "3 nickels + 2 pennies = 17 cents",
    ),
    "the amount of a part": (
        "3/8 = 45 km, so 1/8 = 15 km", "1/3 pie = 5 slices", "If 2/7 = 12 then 1/7 = 6.", "5/5 = 90 litres",
    ),
    "a range or a score": (
        "pages 14-22 = 9 pages", "The Reds won 5-2 = 3 goals", "1950–1958 = 8 years", "1950 - 1958 = 9 years",
        "8-4 = 8 hours",
        "4-1/2 cups = 4.5 cups",
        "1-2-3 = 6",
    ),
    "a name with a number": (
        "Day 3 - 8 + 4 = 12", "Case 4 – 6 × 2 = 12", "Month 3 + 4 = 50", "#2 - 6 + 7 = 13",
        "Weeks 2 - 5 = 20 hours",
        "2nd - 6 + 7 = 13", "4 - 44 + 76 = 120", "No. 6 - 2 × 9 = 18",
    ),
    "numbers of equations": ("(2) − (1) = 7", "3 × (1) + (2) = 19", "[2] - [1] = 5"),
    "a time of day": ("7:30 + 2 h = 9:30", "10:15 + 50 min = 11:05", "13:00 - 11 = 2:00"),
    "a length": ("6'2\" = 74\"", "5’ 4” = 64”", "2 ft 3 in = 27 in"),
    "a ratio": ("18 : 6 + 1 = 4", "20 : (3 + 2) = 4", "A:B:C = 2:3:4, so A = 6", "4 : 6 = 2 : 3"),
    "units that convert": (
        "12 × 60 = 12 hours", "250 mg × 8 = 2 g", "24 × 60 = 1 day", "52 × 7 = 1 year", "9 m + 40 cm = 9.4 m",
    ),
    "containers": ("4 boxes + 2 = 26 pens", "2 score + 5 = 45", "4 dozen × 12 = 48 eggs", "6 nests + 3 = 27 eggs"),
    "places of digits and parts": (
        "4 tens + 7 ones = 47", "3 hundreds + 5 tens = 350", "7 tenths + 3 tenths = 1", "1 ten + 8 ones = 18",
        "6 squared + 8 squared = 100", "4 and 1/2 + 1/2 = 5", "9/4 = 2 and 1/4", "6 + 9 = 5 (carry the 1)",
    ),
    "units of other languages": (
        "3 Stunden + 15 Minuten = 195 Minuten", "2 heures − 20 minutes = 100 minutes", "4 Kisten + 2 = 50 Stifte",
        "7 metros + 10 centímetros = 710 centímetros", "20 minutos × 6 = 2 horas", "2 mil + 500 = 2500",
    ),
    "words of other languages that change a number": (
        "die Hälfte von 14 + 6 = 13", "le double de 7 + 2 = 16", "5 mal 3 + 1 = 16", "5 fois 3 + 1 = 16",
        "18 menos 4 + 1 = 15", "6 на 2 + 1 = 13", "20 % de 30 + 4 = 10", "18除以6+1=4", "8减去2×3=2",
        "la somme de 4 et 5 + 1 = 10", "7 zum Quadrat + 1 = 50",
    ),
    "a hyphen, a date or a number of a program": (
        "Route-60 + 6 = 66", "COVID-19 + 3 = 22", "5/1/2021 - 5/1/2020 = 365 days", "0x20 + 1 = 33",
        "2023-04-09 - 2023-04-01 = 8 days",
    ),
    "what is supposed or denied in other languages": (
        "3 + 3 = 7 ist falsch", "Wenn 3 + 3 = 7, dann auch 7", "Si 3 + 3 = 7, alors 7", "3 + 3 = 7 es falso",
        "Если 3 + 3 = 7, то 7", "如果3+3=7，那么7", "3+3=7是错的", "3 + 3 = 7 isn‘t true",
        "Angenommen, 3 + 3 = 7. Widerspruch.", "Предположим, что 3 + 3 = 7.", "若3+3=7，則矛盾",
        "有人说 3 + 3 = 7。",
        "3 + 3 = 7 no es correcto", "3 + 3 = 7, che è impossibile", "Jeśli 3 + 3 = 7", "3 + 3 = 7, nein",
        "ошибочно 3 + 3 = 7", "3 + 3 = 7 ではない", "3 + 3 = 7 yanlış", "إذا كان 3 + 3 = 7",
    ),
    "what somebody else says, or is taken back": (
        "A common mistake is 3 + 3 = 7.", "One might think 3 + 3 = 7.", "The student wrote 3 + 3 = 7.",
        "Contradiction: 3 + 3 = 7", "3 + 3 = 7. Hmm, that's 6.", "3 + 3 = 7. Sorry, 6.", "Try 3: 3 + 3 = 7, no.",
        "Whenever 3 + 3 = 7", "<del>3 + 3 = 7</del> 3 + 3 = 6", "It is not the case that 3 + 3 = 7.",
        "According to Tom, 3 + 3 = 7.", "3 + 3 = 7 (sic)", "True or false: 3 + 3 = 7", "I first wrote 3 + 3 = 7",
    ),
    "a remainder behind": (
        "17/3 = 5, plus 2", "17 / 3 = 5 boxes with 2 pens over", "20/6 = 3 (2 remain)", "17/3 ≈ 5",
    ),
    "the whole or the broken part": ("[17/3] = 5", "{17/3} = 2/3", "{5.25} = 0.25"),
    "mixed numbers with hyphens": ("1-1/2 + 2-1/2 = 4", "17/3 = 5-2/3"),
    "a decimal with a period": ("1.(3) × 3 = 4",),
    "two currencies, or a root that reaches on": ("USD 5 + EUR 3 = USD 8.30", "c=√36+64=10"),
    "dates": ("15 March + 20 = 4 April", "12/25 - 12/20 = 5 days"),
    "percentages of something else": ("$50 × 10% off = $45", "5% + 3% of 100 = 8"),
    "the number of an item without a space": ("1.2 + 3 = 5", "3.4×5=20"),
    "a clock, a finite ring or truth values": (
        "10 + 5 = 3 on a 12-hour clock", "In Z_7, 5 + 4 = 2", "1 + 1 = 0 over F_2", "1 + 1 = 1 (Boolean)",
        "11 + 1 = 100 (binary)",
    ),
    "any dash in a range": ("pages 14‒22 = 9 pages", "pages 14－22 = 9 pages"),
    "a modulus before": ("Modulo 9, 7 + 5 = 3.", "So mod 5 we get 4 + 4 = 3."),
    "a list": ("median of 4, 5, 6 + 9 = 8", "4,5,6 + 1 = 7", "(1,2) + (3,5) = (4,7)"),
    "other rules": (
        "6 ^ 3 = 5 in XOR", "1 + 2 × 5 = 15 if done left to right", "27^1/3 = 3", "20 — 6 + 1 = 15",
    ),
    "an abbreviation": ("7 lbs. + 3 × 4 = 19", "Rs. 300 + Rs. 40 × 2 = 380", "So it is. + 3 × 4 = 19"),
}  # fmt: skip


@each("kind", KINDS)
def test_a_sign_that_may_be_something_else_states_nothing(kind):
    assert {text: found for text in KINDS[kind] if (found := failing(text))} == {}


HOLDING = (
    "₹40 + ₹25 = ₹65", "7 USD + 5 USD = 12 USD", "6 ✕ 7 = 42", "6 х 7 = 42", "５ + ６ = １１", "٢ × ٤ = ٨",
    "10 − 4 = 6",
    "2½ + 1½ = 4", "10¹² / 10¹⁰ = 100", "12\xa0+\xa05 = 17", "5\u200b+\u200b6 = 11",
    "15\u202f000 + 500 = 15\u202f500",
    "5 lbs. + 6 lbs. = 11 lbs.",
)  # fmt: skip
FAILING = {
    "₹40 + ₹25 = ₹75": "65", "7 CHF + 5 CHF = 13 CHF": "12", "6 ✕ 7 = 48": "42", "６ × ７ = ４８": "42",
    "10 − 4 = 7": "6",
    "4 元 + 5 元 = 8 元": "9", "$6+7=14$元": "13", "6 х 7 = 48": "42", "10¹² / 10¹⁰ = 10": "100",
    "Day 3: 8 + 4 = 13": "12", "12.5 + 4 = 18": "16.5",
    "When we add, 3 + 4 = 8": "7", "17/3 = 4 boxes, 2 left": "17/3",
    "Divide by $7$: $42 / 7 = 5$": "6",
    "In this case 8 + 4 = 13": "12", "10-3=6": "7", "$10-3 = 6$": "7", "• 8 + 4 = 13": "12",
    "4 boxes + 2 boxes = 5": "6", "5 pommes + 3 pommes = 9 pommes": "8", "2000-10-20=1960": "1970",
    "So 7 + 8 = 16 in all": "15", "She has 2 and 3 + 4 = 8 more": "7",
    "12\xa0+\xa05 = 18": "17", "7 lbs. + 3 × 4 = 21": "19",
}  # fmt: skip


@each("text", HOLDING)
def test_equivalent_signs_are_read(text):
    assert [check.holds for check in checks(text)] == [True]


@each("text, right", FAILING.items())
def test_a_wrong_equation_fails_whatever_its_signs(text, right):
    assert [found[2] for found in failing(text)] == [right]
