"""The shapes in which models write solutions, each with its steps: every text was composed for this table."""

import re

from stepsight.core.text.split import Split, split_solution, split_steps
from tests.cases import each

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
