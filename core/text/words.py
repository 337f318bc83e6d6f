"""The words of many languages by which solutions are split. A language is added in this module alone.

`any_of` makes a pattern of a set of words.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping


def _split_words(text: str) -> frozenset[str]:
    return frozenset(word.strip() for word in text.split(","))


STEPS = _split_words("""
    step, steps, reasoning step, solution step, schritt, étape, etape, paso, pas, passo, passaggio, etapa, шаг,
    этап, крок, krok, stap, steg, trinn, trin, vaihe, adım, adim, langkah, langkah ke, bước, lépés, pasul, βήμα,
    hatua, hatua ya, ステップ, 手順, 步骤, 步驟, 단계, خطوة, الخطوة, مرحلة, المرحلة, گام, مرحله, שלב, चरण, कदम, ধাপ,
    ขั้นตอนที่, ขั้นตอน, ขั้นที่, దశ, படி
""")
"""The name of a step."""

THOUGHTS = _split_words(
    "thought, reasoning, phase, stage, paragraph, sentence, gedanke, pensée, pensamiento, pensiero, мысль, 思考"
)
"""Other words that may be numbered like steps, used only if there are no steps."""

_NUMBERS = (
    "one two three four five six seven eight nine ten eleven twelve",
    "first second third fourth fifth sixth seventh eighth ninth tenth",
    "eins zwei drei vier fünf sechs sieben acht neun zehn",
    "erster zweiter dritter vierter fünfter sechster siebter achter neunter zehnter",
    "un deux trois quatre cinq six sept huit neuf dix",
    "première deuxième troisième quatrième cinquième sixième septième huitième neuvième dixième",
    "uno dos tres cuatro cinco seis siete ocho nueve diez",
    "primer segundo tercer cuarto quinto sexto séptimo octavo noveno décimo",
    "um dois três quatro cinco seis sete oito nove dez",
    "primeiro segundo terceiro quarto quinto sexto sétimo oitavo nono décimo",
    "один два три четыре пять шесть семь восемь девять десять",
    "первый второй третий четвертый пятый шестой седьмой восьмой девятый десятый",
    "الأولى الثانية الثالثة الرابعة الخامسة السادسة السابعة الثامنة التاسعة العاشرة",
)
NUMBERS: Mapping[str, int] = {word: value for row in _NUMBERS for value, word in enumerate(row.split(), start=1)}
"""Numbers and ordinals in words, starting with 1."""

OF_ALL = _split_words("of, out of, von, de, di, sur, su, из, van")
"""The word between the number of a step and the number of all steps."""

REFERENCES = _split_words("""
    in, from, of, by, see, to, and, with, using, at, after, as, or, per, the, this, than, our, for, into, under,
    In, From, By, Using, After, As, See, aus, nach, von, mit, im, del, de, du, dal, dans, из, по, в, на, 由, 从,
    根据, 在, 如, 和, 与, 将, 把
""")
"""A word before the name of a step that the text only refers to, as in "by Step 1"."""

ANSWERS = _split_words("""
    antwort, endergebnis, respuesta, respuesta final, réponse, réponse finale, risposta, resposta, resposta final,
    antwoord, svar, odpowiedź, odpověď, cevap, jawaban, đáp án, ответ, відповідь, απάντηση, 最终答案, 最終答案,
    答案, 最終的な答え, 答え, 答, 정답, 답, उत्तर, উত্তর, คำตอบ, الجواب, الإجابة, پاسخ, תשובה, jibu, సమాధానం
""")
"""The heading of an answer, in languages other than English."""

THEREFORE = _split_words("""
    daher, somit, folglich, donc, ainsi, por tanto, por lo tanto, portanto, así que, quindi, pertanto, dus,
    следовательно, итак, таким образом, отже, zatem, dolayısıyla, jadi, vậy
""")
"""The first word of a conclusion, in languages other than English."""

THEREFORE_SIGNS = _split_words("""
    所以, 因此, 综上, 綜上, 故, 于是, したがって, よって, 따라서, 그러므로, इसलिए, অতএব, ดังนั้น, لذلك, إذن,
    بنابراین, לכן
""")
"""The same in languages in which a conclusion may continue without a space after it."""


def any_of(words: Iterable[str]) -> str:
    """Return a pattern of the words, each composed and decomposed as in Unicode, the longest first."""
    forms = {form for word in words for form in (word, unicodedata.normalize("NFD", word))}
    return "|".join(map(re.escape, sorted(forms, key=lambda form: (-len(form), form))))
