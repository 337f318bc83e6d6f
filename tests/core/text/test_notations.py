"""Solutions in the languages and notations of many programs, each with its steps."""

import re

from stepsight.core.text.split import split_solution, split_steps
from tests.cases import each
from tests.messages import refused

# Of each text, ¦ begins another step, «this» is left out of it, and ⟦this⟧ is set aside. The second line of a step
# is one of its own unless the mark before is recognised.
NOTATIONS = [
    # Steps by name
    *(
        f"«{name} 1{sign}»Take 7.\nDouble it.\n¦«{name} 2{sign}»It is 14."
        for name, sign in (
            ("Schritt", ": "),
            ("Étape", " : "),
            ("E\u0301tape", " : "),
            ("Paso", ".- "),
            ("Passo", ": "),
            ("Шаг", ". "),
            ("Krok", ": "),
            ("Hatua ya", ": "),
            ("Langkah", ": "),
            ("Bước", ": "),
            ("ステップ", "："),
            ("手順", "："),
            ("步骤", "："),
            ("步驟", "："),
            ("단계", ": "),
            ("चरण", ": "),
            ("ধাপ", ": "),
            ("ขั้นตอนที่", ": "),
            ("الخطوة", ": "),
            ("שלב", ": "),
            ("STEP\xa0", ":\xa0"),
            ("Step No.", ": "),
            ("\u200bStep", "："),
            ("Reasoning step", ": "),
            ("Thought", ": "),
            ("Phase", " - "),
        )
    ),
    "«Thought 1: »Take 7. Double it. ¦«Thought 2: »It is 14.",
    # If a solution counts both, its steps are those that it calls so.
    "Phase 1: Taking\n¦«Step 1: »Take 7.\nDouble it.\n¦«Step 2: »It is 14.",
    *(
        f"«{mark.format(1)} »Take 7. Double it. ¦«{mark.format(2)} »It is 14."
        for mark in ("[STEP {}]", "[step {}]", "[STEP_{}]", "[Step {} of 2]", "[Schritt {}]", "(Step {})")
    ),
    "«[STEP1]»Take 7. Double it.«[/STEP1] [STEP2]»¦It is 14.«[/STEP2]»",
    "x = 7 (step 1)\n¦so 2x = 14 (step 2)",
    "«第一步：»取7。\n翻倍。\n¦«第二步：»得14。",
    "«**第1步** »取7。\n翻倍。\n¦«**第2步** »得14。",
    "«【步骤一】»取7。\n翻倍。\n¦«【步骤二】»得14。",
    "«第一步：»取7。¦«第二步：»由第一步得14。",
    "«1단계: »7.\nx2.\n¦«2단계: »14.",
    "«1. Schritt: »Nimm 7.\nDoppelt.\n¦«2. Schritt: »14.",
    "«Step One: »Take 7.\nDouble it.\n¦«Step Two: »It is 14.",
    "«Step 1/2: »Take 7.\nDouble it.\n¦«Step 2/2: »It is 14.",
    "«Step 1 of 2 - »Take 7.\nDouble it.\n¦«Step 2 of 2 - »It is 14.",
    "«Step I: »Take 7.\nDouble it.\n¦«Step II: »It is 14.",
    "«Step 1 »(Taking): Take 7.\nDouble it.\n¦«Step 2 »(Doubling): It is 14.",
    "«\\textbf{Step 1:} »Take 7.\nDouble it.\n¦«\\textbf{Step 2:} »It is 14.",
    # Emphasis of more than the mark stays with the text.
    "**«Step 1: »Take 7.**\nDouble it.\n¦**«Step 2: »It is** 14.",
    "\\textbf{«Step 1: »Take 7.}\nDouble it.\n¦\\textbf{«Step 2: »It is} 14.",
    *(
        f"«{mark.format(1)} »Take 7.\nDouble it.\n¦«{mark.format(2)} »It is 14."
        for mark in (
            "🔹 Step {}:",
            "\u2705\ufe0f **Step {}:**",
            "Step {} →",
            "Step {} =>",
            r"\paragraph{{Step {}.}}",
            r"\section*{{Step {}}}",
            r"$\textbf{{Step {}:}}$",
        )
    ),
    "【解答】\n取7。\n¦得14。",
    "«**Step 1:** »Take 7.<br>Double it.¦«**Step 2:** »It is 14.".replace("<br>", "\n"),
    # Numbers
    *(
        f"«{first}»Take 7.\nDouble it.\n¦«{second}»It is 14."
        for first, second in (
            ("1、", "2、"),
            ("1.\xa0", "2.\xa0"),
            ("１．", "２．"),
            ("（1）", "（2）"),
            ("一、", "二、"),
            ("(一) ", "(二) "),
            ("① ", "② "),
            ("1\ufe0f\u20e3 ", "2\ufe0f\u20e3 "),
            ("I. ", "II. "),
            ("(i) ", "(ii) "),
            ("a) ", "b) "),
            ("1 - ", "2 - "),
            ("1\\) ", "2\\) "),
            ("1.) ", "2.) "),
            ("[1] ", "[2] "),
            ("#1 ", "#2 "),
            ("1: ", "2: "),
            ("١. ", "٢. "),
            ("१. ", "२. "),
            ("\u200f1. ", "\u200f2. "),
            ("1.1 ", "1.2 "),
            ("1.1. ", "1.2. "),
            ("1.1: ", "2.1: "),
            ("(1.1) ", "(1.2) "),
            ("### 1.1 ", "### 2.1 "),
            ("**1.1** ", "**1.2** "),
            ("1.1.1 ", "1.1.2 "),
            ("1a) ", "1b) "),
            ("1(a) ", "1(b) "),
            ("1-1. ", "1-2. "),
            ("Step 1.1: ", "Step 1.2: "),
            ("Step 1.1 ", "Step 1.2 "),
            ("> 1. ", "> 2. "),
        )
    ),
    "«1.»取7。\n翻倍。\n¦«2.»得14。\n\n¦答案：14",
    "1 - x = 3\n¦2 - x = 4",
    "1.1 + 2 = 3.1\n¦1.2 + 2 = 3.2",
    "1.1 m and\n¦1.2 m",
    "由①和②得14。",
    # Sentences
    "取7。¦翻倍！¦是14吗？¦是的。",
    "設x＝7．¦則2x＝14．",
    "圆周率是3．14",
    "राम के पास 7 हैं। ¦सीता के पास 14 हैं।",
    "لدى علي 7 أقلام. ¦هل المجموع 14؟ ¦نعم.",
    "Он взял 7 руб. и 5 коп. ¦Всего 705.",
    "¿Cuánto es? ¦¡Siete!",
    "Es kostet z. B. 7 Euro. ¦Das ist viel.",
    "取7，\n再取7。\n¦得14。",
    # Line breaks
    "Take 7.«\r\n»\r\n¦Double it.«\r»\nSo 14.",
    "Take 7.\x85\x85¦Double it.",
    "Take 7.\u2028¦Double it.",
    "Take 7.\nDouble it.«\n\ufeff\u200b»\n¦So 14.",
    "«\ufeff»Take 7.\n¦So 14.",
    "Take 7.\n¦~~~\na\n\nb\n~~~",
    "«<ol><li>»Take 7. Double it.«</li><li>»¦So 14.«</li></ol>»",
    "«<p>»Take 7.«</p><p>»¦So 14.«</p>»",
    "Take 7.«<br/>\n<br/>\n»¦So 14.",
    "«\\begin{enumerate}\n\\item »Take 7.\nDouble it.\n¦«\\item »So 14.«\n\\end{enumerate}»",
    # Tokens and tags
    "Take 7. Double it. «<extra_0>»¦So 14. «<extra_0>»",
    "«Step 1: »Take 7. Double it. «ки\n»¦«Step 2: »So 14. «ки»",
    "«<steps><step id='1'>»Take 7. Double it.«</step>\n<step id='2'>»¦So 14.«</step></steps>»",
    "«<paragraph_1>»Take 7.\n\nDouble it.«</paragraph_1><paragraph_2>»¦So 14.«</paragraph_2>»",
    *(
        f"Take 7. Double it.«{token}»¦So 14.«{token}»"
        for token in ("<|reserved_special_token_0|>", "<|extra_0|>", "<unused7>", "<extra_id_0>", "[unused1]")
    ),
    # Chats
    "Take 7.\n\n¦So 14.«<|im_end|>»",
    "Take 7.\n\n¦So 14.«</s>»",
    "«<|im_start|>»⟦user\nHow much?⟧«<|im_end|>\n<|im_start|>assistant\n»Take 7.\n\n¦So 14.«<|im_end|>»",
    "«<s>[INST]»⟦[INST] How much?⟧«[/INST]» Take 7.\n\n¦So 14.«</s>»".replace("[INST]»⟦", "»⟦"),
    "«<start_of_turn>model\n»Take 7.\n\n¦So 14.«<end_of_turn>»",
    "⟦User: How much?\n\nAssistant:⟧ Take 7.\n\n¦So 14.",
    "⟦[THINK]7?\n\n14?[/THINK]⟧Take 7.\n\n¦So 14.",
    "⟦◁think▷7?\n\n14?◁/think▷⟧\nTake 7.\n\n¦So 14.",
    "⟦<seed:think>7?\n\n14?</seed:think>⟧\nTake 7.\n\n¦So 14.",
    "Take 7.\n\n⟦<reflection>7?\n\n14?</reflection>⟧¦So 14.",
    "⟦[PLAN]7?\n\n14?[/PLAN]⟧Take 7.\n\n¦So 14.",
    "Take 7.«\n<verification>»\n¦So 14.«</verification>»",
    "⟦<reasoning>7?</reasoning>⟧\nTake 7.\n\n¦So 14.",
    "«<reasoning>\n»Take 7.\n¦Double it.\n«</reasoning>\n»¦<answer>14</answer>",
    "⟦<think>7?</think>⟧\n«<answer>\n»Take 7.\n\n¦So 14.«\n</answer>»",
    "«<|channel|>analysis<|message|>»⟦<|channel|>analysis<|message|>7?<|end|>⟧«<|start|>assistant<|channel|>final"
    "<|message|>»Take 7.\n\n¦So 14.«<|return|>»".replace("«<|channel|>analysis<|message|>»", ""),
]


@each("marked", NOTATIONS)
def test_a_solution_in_this_notation_is_split_into_its_steps(marked):
    text = re.sub("[«»¦⟦⟧]", "", marked)
    steps = [step.strip() for step in re.sub("«.*?»|⟦.*?⟧", "", marked, flags=re.DOTALL).split("¦")]
    split = split_solution(text)
    assert list(split.steps) == steps
    assert split.set_aside == tuple(re.findall("⟦(.*?)⟧", marked, re.DOTALL))


@each(
    "text",
    [
        '["Take 7.", "So 14."]',
        "['Take 7.', 'So 14.']",
        "['Take 7.' 'So 14.']",
        "['Take 7.'\n 'So 14.']",
        "array(['Take 7.', 'So 14.'], dtype=object)",
        "('Take 7.', 'So 14.')",
        '[{"step": 1, "text": "Take 7.", "label": "good"}, {"step": 2, "text": "So 14.", "label": "bad"}]',
        "[{'content': 'Take 7.', 'ok': True}, {'content': 'So 14.', 'ok': None}]",
        '{"step": "Take 7."}\n{"step": "So 14."}',
        '{"steps": [{"explanation": "Take 7."}], "final_answer": "So 14."}',
        '{"step_1": "Take 7.", "step_2": "So 14."}',
        '{"step_0": "Take 7.", "step_1": "So 14.", "final_answer": null}',
        '{"final_answer": "So 14.", "steps": ["Take 7."]}',
        '{"Steps": ["Take 7."], "Final Answer": {"value": "So 14."}}',
        '{"solution": {"steps": ["Take 7."], "finalAnswer": ["So 14."]}}',
        '{"steps": {"1": "Take 7.", "2": "So 14."}}',
        '{"reasoning": "Take 7.", "answer": "So 14."}',
        '```json\n["Take 7.", "So 14."]\n```',
        '<think>7?</think>\n{"steps": ["Take 7.", "So 14."]}',
        '[{"role": "user", "content": "?"}, {"role": "assistant", "content": "Take 7.\\n\\nSo 14."}]',
        '"Take 7.\\n\\nSo 14."',
        "Take 7.\\n\\nSo 14.",
        "```markdown\nTake 7.\n\nSo 14.\n```",
    ],
)
def test_steps_that_a_program_printed_are_read(text):
    assert split_steps(text) == ["Take 7.", "So 14."]


def test_the_answer_beside_numbered_steps_or_a_text_of_several_lines_is_the_last_step():
    assert split_steps('{"Step 1": "a b", "Step 2": "c", "Answer": 14}') == ["a b", "c", "14"]
    assert split_steps('{"solution": "It is a.\\n\\nIt is b.", "answer": 14}')[1:] == [
        "It is b.",
        "Final answer: 14",
    ]


@each(
    "text",
    ["[-7, 7]", "[7, 14)", "[[1, 0], [0, 1]]", "{7, 14}", "(7, 14)", "[null]", '"It is 7."', "\\neq \\n\\neq"],
)
def test_an_answer_in_brackets_is_no_list_of_steps(text):
    assert split_steps(text) == [text]


@each("text", ["", "\ufeff", "\u200b\n\n\u2060", " \xa0"])
def test_a_text_of_nothing_visible_has_no_steps(text):
    assert split_steps(text) == []


def test_an_object_without_a_text_is_refused_by_its_place():
    with refused():
        split_steps('[{"text": "Take 7."}, {"n": 7}]')
