"""The shapes in which models write solutions, each with its steps: every text was composed for this table."""

from stepsight.core.text.split import split_solution, split_steps
from tests.cases import each

ONE, TWO, THREE = "Two pens cost $4$ coins.", "Three books cost $9$ coins.", "Together that is $4 + 9 = 13$."

SHAPES: dict[str, tuple[str, list[str]]] = {
    # One paragraph
    "sentences": (f"{ONE} {TWO} {THREE}", [ONE, TWO, THREE]),
    "decimals": (
        "It costs 3.50 at first. Now it costs 2.75. 3.50 - 2.75 = 0.75.",
        ["It costs 3.50 at first.", "Now it costs 2.75.", "3.50 - 2.75 = 0.75."],
    ),
    "abbreviations": (
        "Take e.g. A = 3, i.e. Ann's share. By Eq. 2 we get approx. 7.1, vs. 7.2 before. So it fell.",
        ["Take e.g. A = 3, i.e. Ann's share.", "By Eq. 2 we get approx. 7.1, vs. 7.2 before.", "So it fell."],
    ),
    "titles and initials": (
        "Mr. Lee and Dr. Ray share 8 figs. J. Lee takes 3. Five are left.",
        ["Mr. Lee and Dr. Ray share 8 figs.", "J. Lee takes 3.", "Five are left."],
    ),
    "points end sentences": (
        "Let M be the middle of side A. Then N is opposite to B. So $MN$ is a height.",
        ["Let M be the middle of side A.", "Then N is opposite to B.", "So $MN$ is a height."],
    ),
    "units end sentences": (
        "The rope is 30 ft. long, not 3 ft. The pole is 12 ft. 4 in. high.",
        ["The rope is 30 ft. long, not 3 ft.", "The pole is 12 ft. 4 in. high."],
    ),
    "maths with points": (
        r"Let $A. B$ be given. Then \( a. B \) is whole. We get $x = 2.$ So $x^2 = 4.$",
        ["Let $A. B$ be given.", r"Then \( a. B \) is whole.", "We get $x = 2.$", "So $x^2 = 4.$"],
    ),
    "display maths within": (
        r"We add: \[ 1 + 2. \] Then we double: $$ 2 \cdot 3. $$ It is 6.",
        [r"We add: \[ 1 + 2. \]", r"Then we double: $$ 2 \cdot 3. $$", "It is 6."],
    ),
    "variables begin sentences": (
        "We solve for both. x = 3 is one root. y = 4 is the other! Is it right? Yes.",
        ["We solve for both.", "x = 3 is one root.", "y = 4 is the other!", "Is it right?", "Yes."],
    ),
    "quotes and brackets": (
        'He said "add." She did (twice). Then 3! = 6 is left.',
        ['He said "add."', "She did (twice).", "Then 3! = 6 is left."],
    ),
    "final answer in a line": (
        "We add 2 and 3. Final Answer: The final answer is $5$. I hope it is correct.",
        ["We add 2 and 3.", "Final Answer: The final answer is $5$. I hope it is correct."],
    ),
    "final answer below a paragraph": (
        "We add 2 and 3. That is 5.\n\n**Final Answer:** $5$",
        ["We add 2 and 3.", "That is 5.", "**Final Answer:** $5$"],
    ),
    "one sentence": ("It is 7.", ["It is 7."]),
    # Steps by name
    "Step k: in a line": (
        "Step 1: Add 2 and 3. Step 2: Double it. Step 3: It is 10.",
        ["Add 2 and 3.", "Double it.", "It is 10."],
    ),
    "Step k: in a line without points": ("Step 1: 2 + 3 = 5 Step 2: 5 * 2 = 10", ["2 + 3 = 5", "5 * 2 = 10"]),
    "Step k. in a line, spoken of": (
        "Step 1. Add 2 and 3. Step 2. Double what came in Step 1. It is 10.",
        ["Add 2 and 3.", "Double what came in Step 1. It is 10."],
    ),
    "bold in a line": ("**Step 1:** Add 2 and 3. **Step 2:** Double it.", ["Add 2 and 3.", "Double it."]),
    "Step k: on lines": ("Step 1: Read.\nStep 2: Solve.\nMore of it.", ["Read.", "Solve.\nMore of it."]),
    "Step k -": ("Step 1 - Read.\nStep 2 - Solve.", ["Read.", "Solve."]),
    "Step k –": ("Step 1 – Read.\n\nStep 2 – Solve.", ["Read.", "Solve."]),
    "Step k —": ("Step 1 — Read.\nIt has two parts.\n\nStep 2 — Solve.", ["Read.\nIt has two parts.", "Solve."]),
    "**Step k.**": ("**Step 1.** Read.\n\n**Step 2.** Solve.", ["Read.", "Solve."]),
    "**Step k**": ("**Step 1**\nRead.\n\n**Step 2**\nSolve.", ["Read.", "Solve."]),
    "**Step k**:": ("**Step 1**: Read.\n**Step 2**: Solve.", ["Read.", "Solve."]),
    "**Step k: title**": (
        "**Step 1: Read**\nThere are 2.\n\n**Step 2: Solve**\nIt is 4.",
        ["**Read**\nThere are 2.", "**Solve**\nIt is 4."],
    ),
    "### Step k": ("### Step 1\nRead.\n\n### Step 2\nSolve.", ["Read.", "Solve."]),
    "### Step k: title": (
        "### Step 1: Read\n\nThere are 2.\n\n### Step 2: Solve\n\nIt is 4.",
        ["Read\n\nThere are 2.", "Solve\n\nIt is 4."],
    ),
    "### **Step k: title**": (
        "### **Step 1: Read**\nThere are 2.\n### **Step 2: Solve**\nIt is 4.",
        ["**Read**\nThere are 2.", "**Solve**\nIt is 4."],
    ),
    "## Step k title": (
        "## Step 1 Read it\nThere are 2.\n\n## Step 2 Solve it\nIt is 4.",
        ["Read it\nThere are 2.", "Solve it\nIt is 4."],
    ),
    "[Step k]": ("[Step 1] Read.\n[Step 2] Solve.", ["Read.", "Solve."]),
    "STEP k)": ("STEP 1) Read.\nSTEP 2) Solve.", ["Read.", "Solve."]),
    "- Step k:": ("- Step 1: Read.\n- Step 2: Solve.", ["Read.", "Solve."]),
    "rules between steps": (
        "### Step 1: Read\nThere are 2.\n\n---\n\n### Step 2: Solve\nIt is 4.\n\n---",
        ["Read\nThere are 2.", "Solve\nIt is 4."],
    ),
    "numbers within named steps": (
        "Step 1: Two cases.\n1. even\n2. odd\nStep 2: Add.\n1. both",
        ["Two cases.\n1. even\n2. odd", "Add.\n1. both"],
    ),
    "named steps with an answer": (
        "Step 1: Add.\n\n\\[ 2 + 3 = 5 \\]\n\nStep 2: Double it.\n\nThe answer is: 10.",
        ["Add.\n\n\\[ 2 + 3 = 5 \\]", "Double it.", "The answer is: 10."],
    ),
    "named steps with a boxed end": (
        "## Step 1: Add\nIt is 5.\n\n## Step 2: Double\nIt is 10.\n\nThe final answer is: $\\boxed{10}$",
        ["Add\nIt is 5.", "Double\nIt is 10.", "The final answer is: $\\boxed{10}$"],
    ),
    "named steps under methods": (
        "## Method A\nStep 1: Add.\nStep 2: Halve.\n## Method B\nStep 1: Guess.\nStep 2: Check.",
        ["## Method A\nAdd.", "Halve.", "## Method B\nGuess.", "Check."],
    ),
    # Numbers
    "numbered": ("1. Add.\n2. Double.\n3. Done.", ["Add.", "Double.", "Done."]),
    "numbered with brackets": ("1) Add.\n2) Double.", ["Add.", "Double."]),
    "numbered (k)": ("(1) Add.\n(2) Double.", ["Add.", "Double."]),
    "numbered in a line": (
        "1. Add 2 and 3. 2. Double it. 3. It is 10.",
        ["Add 2 and 3.", "Double it.", "It is 10."],
    ),
    "bold titles": (
        "1. **Add:** It is 5.\n2. **Double:** It is 10.",
        ["**Add:** It is 5.", "**Double:** It is 10."],
    ),
    "bold numbers": ("**1.** Add.\n\n**2.** Double.", ["Add.", "Double."]),
    "bold numbered titles": (
        "**1. Add**\nIt is 5.\n\n**2. Double**\nIt is 10.",
        ["**Add**\nIt is 5.", "**Double**\nIt is 10."],
    ),
    "numbered headings": (
        "### 1. Add\n- 2 is even\n- 3 is odd\n\n### 2. Double\nIt is 10.",
        ["Add\n- 2 is even\n- 3 is odd", "Double\nIt is 10."],
    ),
    "numbers restarted": (
        "**Part A**\n1. Add.\n2. Double.\n\n**Part B**\n1. Halve.\n2. Check.",
        ["**Part A**\nAdd.", "Double.", "**Part B**\nHalve.", "Check."],
    ),
    "numbers restarted under #": (
        "### Given\n\n1. Two.\n2. Three.\n\n### Wanted\n\n1. Their sum.",
        ["### Given\nTwo.", "Three.", "### Wanted\nTheir sum."],
    ),
    "numbers restarted after a colon": (
        "For the sum:\n1. Add.\n2. Note 5.\n\nFor the product:\n1. Multiply.\n2. Note 6.",
        ["For the sum:", "Add.", "Note 5.", "For the product:", "Multiply.", "Note 6."],
    ),
    "numbers with sub-points": (
        "1. Cases:\n   - even\n   - odd\n2. Parts:\n   1. first\n   2. second\n3. Add.",
        ["Cases:\n   - even\n   - odd", "Parts:\n   1. first\n   2. second", "Add."],
    ),
    "numbers with maths between": (
        "1. Add:\n\n\\[\n2 + 3 = 5\n\\]\n\n2. Double:\n\n$$10$$",
        ["Add:\n\n\\[\n2 + 3 = 5\n\\]", "Double:\n\n$$10$$"],
    ),
    "numbers and a conclusion": (
        "We need both.\n\n1. Add.\n2. Double.\n\nTherefore, it is 10.",
        ["We need both.", "Add.", "Double.", "Therefore, it is 10."],
    ),
    "numbers and ####": (
        "1. Add.\n2. So it is $\\boxed{5}$.\n#### 5",
        ["Add.", "So it is $\\boxed{5}$.", "#### 5"],
    ),
    "numbers and a final heading": (
        "1. Add.\n2. Double.\n\n### Final Answer\n\n\\[\n\\boxed{10}\n\\]",
        ["Add.", "Double.", "### Final Answer\n\n\\[\n\\boxed{10}\n\\]"],
    ),
    # Bullets
    "dashes": ("- Add 2 and 3.\n- Double it.\n- It is 10.", ["Add 2 and 3.", "Double it.", "It is 10."]),
    "stars": ("* **Add:** It is 5.\n* **Double:** It is 10.", ["**Add:** It is 5.", "**Double:** It is 10."]),
    "dots": ("• Add.\n• Double.", ["Add.", "Double."]),
    "nested bullets": ("- Add.\n  - first 2\n  - then 3\n- Double.", ["Add.\n  - first 2\n  - then 3", "Double."]),
    "bullets with an end": (
        "We know two things:\n\n- Two is even.\n- Three is odd.\n\nSo the sum is odd.",
        ["We know two things:", "Two is even.", "Three is odd.", "So the sum is odd."],
    ),
    "bullets within paragraphs": (
        "We know:\n- $a = 2$\n- $b = 3$\n\nAdding gives $5$.\n\nDoubling gives $10$.",
        ["We know:\n- $a = 2$\n- $b = 3$", "Adding gives $5$.", "Doubling gives $10$."],
    ),
    # Paragraphs and lines
    "paragraphs": (
        "Add 2 and 3. It is 5.\n\nDouble it. It is 10.",
        ["Add 2 and 3. It is 5.", "Double it. It is 10."],
    ),
    "paragraphs with maths": (
        "Adding, we get:\n\n\\[\n2 + 3 = 5\n\\]\n\nwhich is odd.\n\nDone.",
        ["Adding, we get:\n\n\\[\n2 + 3 = 5\n\\]\n\nwhich is odd.", "Done."],
    ),
    "paragraphs under headings": (
        "## Sum\n\nIt is 5.\n\n## Double\n\nIt is 10.\n\nIt is even.",
        ["## Sum\n\nIt is 5.", "## Double\n\nIt is 10.", "It is even."],
    ),
    "boxed alone": ("It is 5.\n\nDouble it.\n\n$$\\boxed{10}$$", ["It is 5.", "Double it.", "$$\\boxed{10}$$"]),
    "lines": (
        "Ann has 2 pens\nBen has 3 pens\n2 + 3 = <<2+3=5>>5\n#### 5",
        ["Ann has 2 pens", "Ben has 3 pens", "2 + 3 = <<2+3=5>>5", "#### 5"],
    ),
    "lines and # Answer": (
        "I add 2 and 3.\nThat is 5.\nSo it is 5.\n\n# Answer\n\n5",
        ["I add 2 and 3.", "That is 5.", "So it is 5.", "# Answer\n\n5"],
    ),
    "lines and two answers": (
        "Add 2 and 3.\nIt is 5.\n#### 5\nThe answer is: 5",
        ["Add 2 and 3.", "It is 5.", "#### 5", "The answer is: 5"],
    ),
    "lines broken within sentences": (
        "We add 2 and 3\nto get 5.\nThen we double it\nto get 10.",
        ["We add 2 and 3\nto get 5.", "Then we double it\nto get 10."],
    ),
    "wrapped": (
        "There are two pens in the box and three more on the desk,\nwhich makes five. "
        "Each of them costs four coins. So all of\nthem cost twenty coins.",
        [
            "There are two pens in the box and three more on the desk,\nwhich makes five.",
            "Each of them costs four coins.",
            "So all of\nthem cost twenty coins.",
        ],
    ),
    "wrapped paragraphs": (
        "There are two pens in the box\nand three more on the desk.\n\nEach of them costs\nfour coins.",
        ["There are two pens in the box\nand three more on the desk.", "Each of them costs\nfour coins."],
    ),
    # Code
    "code in a fence": (
        "We count:\n\n```python\ndef f(n):\n    total = 0\n\n    return total\n```\n\nIt gives 0.",
        ["We count:\n\n```python\ndef f(n):\n    total = 0\n\n    return total\n```", "It gives 0."],
    ),
    "code in a numbered step": (
        "1. Run\n```\nfor i in x:\n    1. no step\n```\n2. Read it.",
        ["Run\n```\nfor i in x:\n    1. no step\n```", "Read it."],
    ),
    "code without a fence": (
        "n = 3\n\nfor i in range(n):\n    print(i)\n\nIt prints three lines.",
        ["n = 3", "for i in range(n):\n    print(i)", "It prints three lines."],
    ),
    "indented code": (
        "We run it.\n\n    for i in x:\n        add(i)\n\nIt ends.",
        ["We run it.", "for i in x:\n    add(i)", "It ends."],
    ),
}

ASIDE: dict[str, tuple[str, list[str], tuple[str, ...]]] = {
    "thinking": (
        "<think>\nWait, 2 + 3.\n\nYes.\n</think>\n\nAdd them.\n\nIt is 5.",
        ["Add them.", "It is 5."],
        ("<think>\nWait, 2 + 3.\n\nYes.\n</think>",),
    ),
    "thinking without a beginning": (
        "Okay, 2 + 3.\n</think>\n\n1. Add.\n2. Done.",
        ["Add.", "Done."],
        ("Okay, 2 + 3.\n</think>",),
    ),
    "no thinking": ("<think>\n\n</think>\n\n1. Add.\n2. Done.", ["Add.", "Done."], ()),
    "thinking and a heading": (
        "<think>2 + 3</think>\n**Solution:**\n\n1. Add.\n2. Done.",
        ["Add.", "Done."],
        ("<think>2 + 3</think>", "**Solution:**"),
    ),
    "Sure!": (
        "Sure! Let's solve this step by step.\n\n1. Add.\n2. Done.",
        ["Add.", "Done."],
        ("Sure! Let's solve this step by step.",),
    ),
    "Sure, here is": (
        "Sure, here's a step-by-step solution:\n\n**Step 1:** Add.\n\n**Step 2:** Done.",
        ["Add.", "Done."],
        ("Sure, here's a step-by-step solution:",),
    ),
    "let's think": (
        "Let's think step by step. Ann has 2 pens. Ben has 3.",
        ["Ann has 2 pens.", "Ben has 3."],
        ("Let's think step by step.",),
    ),
    "to solve": (
        "To solve this problem, we need to follow these steps:\n\n1. Add.\n2. Done.",
        ["Add.", "Done."],
        ("To solve this problem, we need to follow these steps:",),
    ),
    "**Solution:**": ("**Solution:**\nAdd 2 and 3.\nIt is 5.", ["Add 2 and 3.", "It is 5."], ("**Solution:**",)),
    "## Solution": ("## Solution\n\nAdd 2 and 3.\n\nIt is 5.", ["Add 2 and 3.", "It is 5."], ("## Solution",)),
    "Solution: in a line": ("Solution: Add 2 and 3. It is 5.", ["Add 2 and 3.", "It is 5."], ("Solution:",)),
    "nothing else": ("Sure!", ["Sure!"], ()),
    "thinking that was cut": ("<think>\nTwo and three.\n\nThat is", ["<think>\nTwo and three.", "That is"], ()),
    "an opening with content": (
        "Sure, 2 + 3 = 5.\nLet's solve for x.",
        ["Sure, 2 + 3 = 5.", "Let's solve for x."],
        (),
    ),
}


@each("text, steps", SHAPES.values())
def test_a_solution_in_this_shape_is_split_into_its_steps(text, steps):
    split = split_solution(text)
    assert (list(split.steps), split.set_aside) == (steps, ())


@each("text, steps, set_aside", ASIDE.values())
def test_text_around_a_solution_is_set_aside(text, steps, set_aside):
    split = split_solution(text)
    assert (list(split.steps), split.set_aside) == (steps, set_aside)
    assert split_steps(text) == steps


def test_the_table_holds_many_shapes():
    assert len(SHAPES) + len(ASIDE) >= 60
