"""The names: people, things and ways to tell a number that several families share."""

NAMES = (
    "Ann",
    "Ben",
    "Mia",
    "Tom",
    "Lena",
    "Carlos",
    "Grace",
    "Yusuf",
    "Omar",
    "Ruth",
    "Ivan",
    "Nora",
    "Sam",
    "Priya",
    "Leo",
    "Hana",
)
THINGS = (
    "pens",
    "books",
    "mugs",
    "toys",
    "lamps",
    "cups",
    "hats",
    "balls",
    "bowls",
    "plates",
    "scarves",
    "candles",
)
WEEKS = {7: "a week", 14: "two weeks"}
_DOZENS = {12: "a dozen {unit}", 24: "two dozen {unit}", 6: "half a dozen {unit}"}


def dozens(unit: str) -> dict[int, str]:
    return {value: text.format(unit=unit) for value, text in _DOZENS.items()}
