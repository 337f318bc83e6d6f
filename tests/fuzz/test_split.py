"""Generated solutions of known steps, in many languages, with many marks, wrappers and line ends."""

import json

from stepsight.core.text.split import split_solution
from tests.fuzz.attack import COUNT
from tests.seeds import chance

# Sentences of a language, and the name of a step in it with its sign.
LANGUAGES = {
    "en": (
        ["We begin with {a} pens.", "Then {a} + {b} = {c}.", "It costs $3.50 each.", "So there are {c} pens."],
        "Step",
        ":",
    ),
    "de": (
        ["Wir beginnen mit {a} Stiften.", "Dann ist {a} + {b} = {c}.", "Das kostet z. B. 3,50 Euro."],
        "Schritt",
        ":",
    ),
    "fr": (["Nous avons {a} stylos.", "Donc {a} + {b} = {c}.", "Étant donné {b}, on ajoute."], "Étape", " :"),
    "es": (["Tenemos {a} plumas.", "Luego {a} + {b} = {c}.", "¡Son {c}!"], "Paso", "."),
    "ru": (["У нас {a} ручек.", "Тогда {a} + {b} = {c}.", "Это 5 руб. и 3 коп."], "Шаг", ":"),
    "zh": (["我们有{a}支笔。", "所以{a}+{b}={c}。", "一共{c}支！"], "步骤", "："),
    "ja": (["ペンが{a}本あります。", "だから{a}+{b}={c}です。"], "ステップ", "："),
    "hi": (["हमारे पास {a} कलम हैं।", "तो {a} + {b} = {c} है।"], "चरण", ":"),
    "ar": (["لدينا {a} أقلام.", "إذن {a} + {b} = {c}.", "هل هي {c}؟"], "الخطوة", ":"),
    "th": (["เรามีปากกา {a} ด้าม", "ดังนั้น {a} + {b} = {c}"], "ขั้นตอนที่", ":"),
}
CIRCLED = "①②③④⑤⑥"
NUMERALS = "一二三四五六"
ROMAN = ("I", "II", "III", "IV", "V", "VI")
MARKS = {
    "point": lambda n: f"{n}. ",
    "bracket": lambda n: f"{n}) ",
    "both": lambda n: f"({n}) ",
    "no-break": lambda n: f"{n}.\xa0",
    "comma": lambda n: f"{n}、",
    "wide": lambda n: f"（{n}）",
    "circled": lambda n: f"{CIRCLED[n - 1]} ",
    "keycap": lambda n: f"{n}\ufe0f\u20e3 ",
    "roman": lambda n: f"{ROMAN[n - 1]}. ",
    "numeral": lambda n: f"{NUMERALS[n - 1]}、",
    "escaped": lambda n: f"{n}\\. ",
    "bullet": lambda n: "- ",
    "dot": lambda n: "• ",
    "outline": lambda n: f"1.{n}. ",
    "letter": lambda n: f"{(n + 2) // 3}{'cab'[n % 3]}) ",
    "thought": lambda n: f"Thought {n}: ",
    "tag": lambda n: f"[STEP {n}] ",
    "ordinal": lambda n: f"第{NUMERALS[n - 1]}步：",
}
WRAPPERS = (
    "{}",
    "\ufeff{}\n",
    "<think>\nWell.\n\n1. Hm.\n</think>\n\n{}",
    "[THINK]1. Hm.\n2. So.[/THINK]{}",
    "{}<|im_end|>\n",
    "<|im_start|>assistant\n{}<|im_end|>",
    "<s>[INST] 1. What? [/INST] {}</s>",
    "<think>Hm.</think>\n<answer>\n{}\n</answer>",
    "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>{}<|return|>",
    "```markdown\n{}\n```",
    "{}\n\u200b\n",
)
LINE_ENDS = ("\n", "\r\n", "\r", "\x85", "\u2028")
PRINTED = (
    lambda steps: json.dumps(steps),
    lambda steps: json.dumps([{"step": n, "text": s} for n, s in enumerate(steps, 1)]),
    repr,
    lambda steps: "[" + " ".join(map(repr, steps)) + "]",
    lambda steps: json.dumps({"steps": steps}, indent=1),
    lambda steps: "\n".join(json.dumps({"content": step}) for step in steps),
    lambda steps: "".join(f"<step>{step}</step>\n" for step in steps),
    lambda steps: "".join(f"{s} <extra_0>" for s in steps),
    lambda steps: " ки\n".join(steps) + " ки",
    lambda steps: "".join(f"<li>{step}</li>" for step in steps).join(["<ol>", "</ol>"]),
)


def test_generated_solutions_are_split_into_their_steps():
    for number in range(max(COUNT, 300)):
        rng = chance(number)
        language = rng.choice(list(LANGUAGES))
        sentences, name, sign = LANGUAGES[language]
        a, b = rng.randint(2, 99), rng.randint(2, 99)
        lines = [one.format(a=a, b=b, c=a + b) for one in sentences]
        joint = rng.choice(["\n", " "])
        steps = [joint.join(rng.choices(lines, k=rng.randint(1, 2))) for _ in range(rng.randint(2, 6))]
        style = rng.choice(["named", "bold", "paragraphs", "printed", *MARKS])
        if style == "printed":
            text = rng.choice(PRINTED)(steps)
        elif style == "paragraphs":
            text = "\n\n".join(steps)
        elif style in ("named", "bold"):
            marked = (
                f"{name}{rng.choice([' ', chr(160)])}{n}{sign} {step}" for n, step in enumerate(steps, start=1)
            )
            text = "\n".join(f"**{one.replace(sign, sign + '**', 1)}" if style == "bold" else one for one in marked)
        else:
            text = rng.choice(["\n", "\n\n"]).join(MARKS[style](n) + step for n, step in enumerate(steps, start=1))
        text = rng.choice(WRAPPERS).replace("{}", text)
        text = text.replace("\n", rng.choice(LINE_ENDS)) if style != "printed" else text
        assert list(split_solution(text).steps) == steps, (number, style, language, text)
