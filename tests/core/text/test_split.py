"""Solutions in the shapes, languages and notations of many models and programs, each with its steps."""

import re

from stepsight.core.text.split import Split, split_solution, split_steps
from tests.cases import each
from tests.cost import is_linear
from tests.messages import refused

# Nothing within these is a mark.
BLOCKS = (
    "\\[\nx = 1\n\n+ 2\n\\]",
    "$$\na\n\nb\n$$",
    "\\begin{align*}\nx &= 1 \\\\\n\ny &= 2\n\\end{align*}",
    "[asy]\ndraw(A);\n\n1. dot\n2. dot\n[/asy]",
)


def test_json_list_with_substeps():
    assert split_steps('["a", ["b", "c"]]') == ["a", ["b", "c"]]


def test_json_list_of_something_else_is_refused():
    with refused():
        split_steps('["a", 3]')


def test_many_openers_take_linear_time():
    assert is_linear(lambda size: split_steps("\\begin{a}" * size), 20_000)


def test_many_spaces_take_linear_time():
    assert is_linear(lambda size: split_steps("a\n" + " " * size + "b"), 100_000)


def test_a_number_of_too_many_digits_is_split_like_others():
    assert len(split_steps("Step " + "1" * 5000 + ": a\nStep 2: b")) == 2


def test_a_json_list_holds_texts_that_can_be_steps():
    with refused():
        split_steps('["\\ud800 x"]')


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
            ("1- ", "2- "),
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
    "«1. »Ajouter.\n¦«2. »Doubler.\n\n¦Re\u0301ponse : 14",
    "1 - x = 3\n¦2 - x = 4",
    "1- x = 3\n¦2- x = 4",
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


@each("text", ["", " \n ", "\ufeff", "\u200b\n\n\u2060", " \xa0"])
def test_a_text_of_nothing_visible_has_no_steps(text):
    assert split_steps(text) == []


def test_an_object_without_a_text_is_refused_by_its_place():
    with refused():
        split_steps('[{"text": "Take 7."}, {"n": 7}]')


# Of each text, | begins another step, «this» is left out of it, and ⟦this⟧ is set aside.
SHAPES = [
    # One paragraph
    "Two pens cost $4$ coins. |Three books cost $9$ coins. |Together that is $4 + 9 = 13$.",
    "It costs 3.50 at first. |Now it costs 2.75. |3.50 - 2.75 = 0.75.",
    "Take e.g. A = 3, i.e. Ann's share. |By Eq. 2 we get approx. 7.1, vs. 7.2 before. |So it fell.",
    "Mr. Lee and Dr. Ray share 8 figs. |J. Lee takes 3. |Five are left.",
    "Let M be the middle of side A. |Then N is opposite to B. |So $MN$ is a height.",
    "The rope is 30 ft. long, not 3 ft. |The pole is 12 ft. 4 in. high.",
    r"Let $A. B$ be given. |Then \( a. B \) is whole. |We get $x = 2.$ |So $x^2 = 4.$",
    r"We add: \[ 1 + 2. \] |Then we double: $$ 2 \cdot 3. $$ |It is 6.",
    "We solve for both. |x = 3 is one root. |y = 4 is the other! |Is it right? |Yes.",
    'He said "add." |She did (twice). |Then 3! = 6 is left.',
    "We add 2 and 3. |Final Answer: The final answer is $5$. I hope it is correct.",
    "We add 2 and 3. |That is 5.\n\n|**Final Answer:** $5$",
    "It is 7.",
    # Steps by name
    "«Step 1: »Add 2 and 3. |«Step 2: »Double it. |«Step 3: »It is 10.",
    "«Step 1: »2 + 3 = 5 |«Step 2: »5 * 2 = 10",
    "«Step 1. »Add 2 and 3. |«Step 2. »Double what came in Step 1. It is 10.",
    "«**Step 1:** »Add 2 and 3. |«**Step 2:** »Double it.",
    "«Step 1: »Read.\n|«Step 2: »Solve.\nMore of it.",
    "«Step 1 - »Read.\n|«Step 2 - »Solve.",
    "«Step 1 – »Read.\n\n|«Step 2 – »Solve.",
    "«Step 1 — »Read.\nIt has two parts.\n\n|«Step 2 — »Solve.",
    "«**Step 1.** »Read.\n\n|«**Step 2.** »Solve.",
    "«**Step 1**\n»Read.\n\n|«**Step 2**\n»Solve.",
    "«**Step 1**: »Read.\n|«**Step 2**: »Solve.",
    "**«Step 1: »Read**\nThere are 2.\n\n|**«Step 2: »Solve**\nIt is 4.",
    "«### Step 1\n»Read.\n\n|«### Step 2\n»Solve.",
    "«### Step 1: »Read\n\nThere are 2.\n\n|«### Step 2: »Solve\n\nIt is 4.",
    "«### »**«Step 1: »Read**\nThere are 2.\n|«### »**«Step 2: »Solve**\nIt is 4.",
    "«## Step 1 »Read it\nThere are 2.\n\n|«## Step 2 »Solve it\nIt is 4.",
    "«[Step 1] »Read.\n|«[Step 2] »Solve.",
    "«STEP 1) »Read.\n|«STEP 2) »Solve.",
    "«- Step 1: »Read.\n|«- Step 2: »Solve.",
    "«### Step 1: »Read\nThere are 2.\n\n|«---\n\n### Step 2: »Solve\nIt is 4.«\n\n---»",
    "«Step 1: »Two cases.\n1. even\n2. odd\n|«Step 2: »Add.\n1. both",
    "«Step 1: »Add.\n\n\\[ 2 + 3 = 5 \\]\n\n|«Step 2: »Double it.\n\n|The answer is: 10.",
    "«## Step 1: »Add\nIt is 5.\n\n|«## Step 2: »Double\nIt is 10.\n\n|The final answer is: $\\boxed{10}$",
    "## Method A\n«Step 1: »Add.\n|«Step 2: »Halve.\n|## Method B\n«Step 1: »Guess.\n|«Step 2: »Check.",
    "«Step 1: »Read.\n\nMore of it.\n|«**Step 2:** »Solve.\n|«### Step 3. »Check.",
    # Numbers
    "«1. »Add.\n|«2. »Double.\n|«3. »Done.",
    "«1) »Add.\n|«2) »Double.",
    "«(1) »Add.\n|«(2) »Double.",
    "«1. »Add 2 and 3. |«2. »Double it. |«3. »It is 10.",
    "«1. »**Add:** It is 5.\n|«2. »**Double:** It is 10.",
    "«**1.** »Add.\n\n|«**2.** »Double.",
    "**«1. »Add**\nIt is 5.\n\n|**«2. »Double**\nIt is 10.",
    "«### 1. »Add\n- 2 is even\n- 3 is odd\n\n|«### 2. »Double\nIt is 10.",
    "**Part A**\n«1. »Add.\n|«2. »Double.\n\n|**Part B**\n«1. »Halve.\n|«2. »Check.",
    "### Given\n«\n1. »Two.\n|«2. »Three.\n\n|### Wanted\n«\n1. »Their sum.",
    "For the sum:\n|«1. »Add.\n|«2. »Note 5.\n\n|For the product:\n|«1. »Multiply.\n|«2. »Note 6.",
    "«1. »Cases:\n   - even\n   - odd\n|«2. »Parts:\n   1. first\n   2. second\n|«3. »Add.",
    "«1. »Add:\n\n\\[\n2 + 3 = 5\n\\]\n\n|«2. »Double:\n\n$$10$$",
    "We need both.\n\n|«1. »Add.\n|«2. »Double.\n\n|Therefore, it is 10.",
    "«1. »Add.\n|«2. »Double.\nAlso, the sign is positive.",
    "«1. »Add.\n|«2. »So it is $\\boxed{5}$.\n|#### 5",
    "«1. »Add.\n|«2. »Double.\n\n|### Final Answer\n\n\\[\n\\boxed{10}\n\\]",
    "«1. »Add 2 and 3.\n|«2) »That is 5.\n   So five.\n|«3. »Done.",
    "We count.\n|«1. »one\n|«2. »two",
    "«1. »one\n|«2. »two\n\n|Then:\n|«1. »three",
    "«1. »one\n|«2. »two\n\n   Then:\n1. three",
    "In 2024. a year passed.\n|7. is prime",
    "3.5 apples\n|1.5 pears",
    "2. two\n|3. three",
    "2. two\n|«1. »one\n|«2. »three",
    # Bullets
    "«- »Add 2 and 3.\n|«- »Double it.\n|«- »It is 10.",
    "«* »**Add:** It is 5.\n|«* »**Double:** It is 10.",
    "«• »Add.\n|«• »Double.",
    "«- »Add.\n  - first 2\n  - then 3\n|«- »Double.",
    "We know two things:\n\n|«- »Two is even.\n|«- »Three is odd.\n\n|So the sum is odd.",
    "We know:\n- $a = 2$\n- $b = 3$\n\n|Adding gives $5$.\n\n|Doubling gives $10$.",
    # Paragraphs and lines
    "Add 2 and 3. It is 5.\n\n|Double it. It is 10.",
    "Adding, we get:\n\n\\[\n2 + 3 = 5\n\\]\n\nwhich is odd.\n\n|Done.",
    "## Sum\n\nIt is 5.\n\n|## Double\n\nIt is 10.\n\n|It is even.",
    "It is 5.\n\n|Double it.\n\n|$$\\boxed{10}$$",
    "Ann has 2 pens\n|Ben has 3 pens\n|2 + 3 = <<2+3=5>>5\n|#### 5",
    "I add 2 and 3.\n|That is 5.\n|So it is 5.\n\n|# Answer\n\n5",
    "Add 2 and 3.\n|It is 5.\n|#### 5\n|The answer is: 5",
    "We add 2 and 3\nto get 5.\n|Then we double it\nto get 10.",
    "There are two pens in the box and three more on the desk,\nwhich makes five. |Each of them costs four "
    "coins. |So all of\nthem cost twenty coins.",
    "There are two pens in the box\nand three more on the desk.\n\n|Each of them costs\nfour coins.",
    "a\nb\n\n \n|c",
    "a \\[ b\n|c",
    "a \\\\[4pt] b\n\n|Next\n\n|\\[ x \\]\n\n|last",
    "[asy] draw [/asy]\n|four",
    "[" * 5000,
    *(f"We draw {block}\n\n|Then we count." for block in BLOCKS),
    *(f"«1. »see {block}\n|«2. »done" for block in BLOCKS),
    # Code
    "We count:\n\n```python\ndef f(n):\n    total = 0\n\n    return total\n```\n\n|It gives 0.",
    "«1. »Run\n```\nfor i in x:\n    1. no step\n```\n|«2. »Read it.",
    "n = 3\n\n|for i in range(n):\n    print(i)\n\n|It prints three lines.",
    "We run it.\n\n    |for i in x:\n    «    »add(i)\n\n|It ends.",
    # Set aside
    "⟦<think>\nWait, 2 + 3.\n\nYes.\n</think>⟧\n\nAdd them.\n\n|It is 5.",
    "⟦Okay, 2 + 3.\n</think>⟧\n\n«1. »Add.\n|«2. »Done.",
    "«<think>\n\n</think>\n\n1. »Add.\n|«2. »Done.",
    "⟦<think>2 + 3</think>⟧\n⟦**Solution:**⟧\n\n«1. »Add.\n|«2. »Done.",
    "⟦Sure! Let's solve this step by step.⟧\n\n«1. »Add.\n|«2. »Done.",
    "⟦Sure, here's a step-by-step solution:⟧\n\n«**Step 1:** »Add.\n\n|«**Step 2:** »Done.",
    "⟦Let's think step by step.⟧ Ann has 2 pens. |Ben has 3.",
    "⟦To solve this problem, we need to follow these steps:⟧\n\n«1. »Add.\n|«2. »Done.",
    "⟦**Solution:**⟧\nAdd 2 and 3.\n|It is 5.",
    "⟦## Solution⟧\n\nAdd 2 and 3.\n\n|It is 5.",
    "⟦Solution:⟧ Add 2 and 3. |It is 5.",
    "Sure!",
    "<think>\nTwo and three.\n\n|That is",
    "Sure, 2 + 3 = 5.\n|Let's solve for x.",
]


@each(
    "text, steps, thinking, set_aside",
    [
        (
            "<think>\nTwo.\n\nWait, three.\n</think>\n\n1. Add.\n2. Done.",
            ["Two.", "Wait, three.", "Add.", "Done."],
            2,
            (),
        ),
        ("Two.\n\nThree.</think>\nSure!\n\nSo 5.", ["Two.", "Three.", "So 5."], 2, ("Sure!",)),
        ('[THINK]Two.[/THINK]\n["a", "b"]', ["Two.", "a", "b"], 1, ()),
        ("1. Add.\n2. Done.", ["Add.", "Done."], 0, ()),
    ],
)
def test_thinking_is_split_where_one_wants_it_judged(text, steps, thinking, set_aside):
    """By its own form, so that a numbered solution does not make one step of it."""
    assert split_solution(text, judges_thinking=True) == Split(tuple(steps), set_aside, thinking)


def test_numbers_of_steps_have_up_to_five_digits():
    assert len(split_steps("\n".join(f"{number}. Add {number}." for number in range(1, 10_003)))) == 10_002


@each("marked", SHAPES)
def test_a_solution_in_this_shape_is_split_into_its_steps(marked):
    text = re.sub("[«»|⟦⟧]", "", marked)
    steps = [step.strip() for step in re.sub("«.*?»|⟦.*?⟧", "", marked, flags=re.DOTALL).split("|")]
    split = split_solution(text)
    assert list(split.steps) == split_steps(text) == steps
    assert split.set_aside == tuple(re.findall("⟦(.*?)⟧", marked, re.DOTALL))
