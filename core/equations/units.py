"""Words after numbers: units inside an expression, words that end an expression, and multiples such as a dozen."""

import re
from collections.abc import Set
from fractions import Fraction

from stepsight.core.text.signs import words

SCALES = {"dozen": 12, "hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}

# Verbs, conjunctions, parts, places of digits, powers and the like, which no unit contains.
_NEVER = words(
    """
    is are was were be been being am has have had do does did will would can could should shall may
    might must the and or but so then thus hence therefore because since if when where while which that
    who whose what why how this these those there here it its it's he she they we you i his her their
    our your my him them us than as not no nor only also too just about into onto from with without by
    between among until gives give gave get gets got makes make made leaves leave left need needs spend
    spends spent earn earns equal equals more less fewer greater smaller times minus plus mod modulo
    remainder half twice before after during let suppose assume given find note notice now first second
    third next finally yields becomes become means implies using use used
    january february march april june july august september october november december
    ones ten tens tenth tenths hundreds hundredth hundredths thousands thousandth thousandths halves thirds fourth
    fourths fifth fifths sixth sixths seventh sevenths eighth eighths ninth ninths squared cubed cubes carré
    cuadrado quadrado quadrato quadrat viertel drittel achtel cuartos tercios
    """
)

_CONVERTIBLE = {
    "time": "second seconds sec secs minute minutes min mins hour hours hr hrs day days week weeks month months"
    " year years decade decades century centuries",
    "length": "mm cm m km inch inches in foot feet ft yard yards yd mile miles meter meters metre metres kilometer"
    " kilometers centimeter centimeters millimeter millimeters",
    "mass": "g kg mg gram grams kilogram kilograms pound pounds lb lbs ounce ounces oz ton tons tonne tonnes",
    "volume": "ml l liter liters litre litres milliliter milliliters gallon gallons quart quarts pint pints cup"
    " cups tablespoon tablespoons teaspoon teaspoons ounce ounces",
    "money": "cent cents dollar dollars penny pennies nickel nickels dime dimes quarter quarters buck bucks $ ¢",
    "data": "byte bytes kb mb gb tb",
    "number": "dozen dozens pair pairs percent degree degrees radians score couple half",
}
_DIMENSIONS = {word: dimension for dimension, words in _CONVERTIBLE.items() for word in words.split()}


# The size of each unit, measured in the smallest of its system. Systems are not converted into each other.
_UNITS = (
    "second seconds sec secs s:1 minute minutes min mins:60 hour hours hr hrs h:3600 day days:86400"
    " week weeks:604800",
    "inch inches in:1 foot feet ft:12 yard yards yd:36 mile miles mi:63360",
    "mm millimeter millimeters:1 cm centimeter centimeters:10 m meter meters metre metres:1000"
    " km kilometer kilometers kilometre kilometres:1000000",
    "mg milligram milligrams:1 g gram grams:1000 kg kilogram kilograms:1000000",
    "ounce ounces oz:1 pound pounds lb lbs:16 ton tons:32000",
    "ml milliliter milliliters:1 l liter liters litre litres:1000",
    "teaspoon teaspoons tsp:1 tablespoon tablespoons tbsp:3 cup cups:48 pint pints:96 quart quarts:192"
    " gallon gallons:768",
    "¢ cent cents penny pennies p:1 nickel nickels:5 dime dimes:10 $ € £ dollar dollars buck bucks euro euros"
    " pound pounds:100",
    "percent %:1",
    "piece pieces:1 dozen dozens:12",
)
_SYSTEMS = [
    {name: int(size) for names, size in re.findall(r"([^:]{1,200}):(\d+)", text) for name in names.split()}
    for text in _UNITS
]
_RATIOS = {Fraction(x, y) for sizes in _SYSTEMS for x in sizes.values() for y in sizes.values()} - {1}

_LARGE = 6
_COINS = words("nickel nickels dime dimes")
_LETTERS = re.compile("[a-z]+")


def conversion(unit: str) -> list[tuple[int, int]]:
    """Return the systems of units that a unit belongs to, each with the unit's size in the smallest unit of that
    system. Empty for an unknown unit."""
    return [(system, sizes[unit]) for system, sizes in enumerate(_SYSTEMS) if unit in sizes]


def are_convertible(unit: str, ratio: Fraction, text: str) -> bool:
    """True if `ratio`, or its inverse, is the ratio between `unit` and another unit of its system, such as 60 for
    minutes. Coins of several cents count only if `text` names one."""
    names_coin = not _COINS.isdisjoint(_LETTERS.findall(text.lower()))
    return any(
        ratio in (Fraction(size, other), Fraction(other, size))
        for system, size in conversion(unit)
        for name, other in _SYSTEMS[system].items()
        if other != size and (names_coin or name not in _COINS)
    )


def is_unknown_conversion(units: Set[str], ratio: Fraction) -> bool:
    """True if none of the units is known and they may be words of another language: `ratio` is large and occurs
    between two known units, such as 60."""
    is_large = max(ratio, 1 / ratio) > _LARGE
    return is_large and ratio in _RATIOS and not any(map(conversion, units))


RATES = {"mph": "mile/hour", "kph": "km/hour", "kmh": "km/hour", "mpg": "mile/gallon"}
"""Abbreviated units of rates, in full."""

CONTAINERS = words(
    """
    score dozen dozens pair pairs box boxes pack packs package packages packet packets bag bags case cases carton
    cartons crate crates bottle bottles set sets roll rolls tray trays basket baskets jar jars bunch bunches bundle
    bundles group groups team teams row rows shelf shelves bus buses table tables sheet sheets stack stacks can cans
    paar paire paires par pares dutzend douzaine docena
    """
)
"""Units that contain others, so that their number is not the number of their contents."""

_SHORT = words(
    "mph kph mpg pts sqft hrs mins pcs kb mb gb kbps mbps chf gbp"
    " in on to at by of an as so or if is it he we no up us do my me am go be"
)


def is_unit_word(word: str) -> bool:
    """True if a word can be a unit after a number inside an expression."""
    return word.lower() not in _NEVER and is_word(word)


def is_word(text: str) -> bool:
    """True if `text` is a word or a unit rather than a product of letters such as `ab` or `xyz`."""
    lower = text.lower()
    if lower in _DIMENSIONS or lower in _SHORT:
        return True
    return len(text) > 2 and not set("aeiouy").isdisjoint(lower)


def may_be_glued(word: str) -> bool:
    """True if a word written directly after a number may be its unit, as in 5km. False if it is rather a factor or
    a name, as in 2Eve."""
    return word in _DIMENSIONS or word in _SHORT or (len(word) > 3 and word.islower())


def differ_in_size(units: Set[str]) -> bool:
    """True if two of the units are of the same system but of different sizes, such as hours and days."""
    sizes: dict[int, set[int]] = {}
    for unit in units:
        for system, size in conversion(unit):
            sizes.setdefault(system, set()).add(size)
    return any(len(different) > 1 for different in sizes.values())


def mixes_units(words: Set[str]) -> bool:
    """True if the words include different units of the same kind, such as hours and minutes. A number without a
    unit is then ambiguous."""
    units = {singular(word) for word in words if word in _DIMENSIONS}
    dimensions = [_DIMENSIONS[unit] for unit in units if unit in _DIMENSIONS]
    return differ_in_size(words) or len(dimensions) != len(set(dimensions))


def singular(word: str) -> str:
    """Return the singular of a unit's name."""
    irregular = {"feet": "foot", "inches": "inch", "centuries": "century", "pennies": "penny", "ft": "foot"}.get(
        word
    )
    if irregular:
        return irregular
    return word[:-1] if word.endswith("s") and word[:-1] in _DIMENSIONS else word
