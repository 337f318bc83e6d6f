"""The wording: templates in which any calculation can be told.

Places: {eq} the equation `formula = result`, {what} and {What} the name of its result, {res} the result, {weq} and
{wres} the same as "name = ..." in mathematics, {box} the answer.
"""

SAYS = (
    "{What} is {eq}.",
    "{What}: {eq}.",
    "{eq}, so {what} is {res}.",
    "Next, {what}: {eq}.",
    "Compute {what}: {eq}.",
    "{eq} gives {what}.",
    "We get {what} from {eq}.",
    "Then {what} is {eq}.",
    "Now we find {what}: {eq}.",
    "{What} equals {eq}.",
    "We calculate {what} as {eq}.",
    "So {what} is {eq}.",
    "To find {what}, we compute {eq}.",
    "For {what} we have {eq}.",
    "This means that {what} is {eq}.",
    "Since {eq}, {what} is {res}.",
    "{What} comes out as {eq}.",
    "That makes {what} {eq}.",
)
# Of a result that no calculation stands before.
BARES = (
    "{What} is {res}.",
    "So {what} is {res}.",
    "{What}: {res}.",
    "For {what} we have {res}.",
    "This means that {what} is {res}.",
    "Then {what} is {res}.",
    "Next, {what}: {res}.",
    "As {what} we take {res}.",
)
JUMPS = (
    "{What} comes to {res}.",
    "In one go, {what} is {res}.",
    "Working it out, {what} is {res}.",
    "{What} works out as {res}.",
    "A short calculation shows that {what} is {res}.",
    "Then {what} must be {res}.",
)
READS = (
    "Read off: {v} {noun}.",
    "The problem gives {v} {noun}.",
    "Given: {v} {noun}.",
    "From the problem: {v} {noun}.",
    "We are told: {v} {noun}.",
    "We know from the text: {v} {noun}.",
    "According to the problem: {v} {noun}.",
)
ANSWERS = (
    "The answer is {box}.",
    "So the answer is {box}.",
    "Answer: {box}.",
    "Hence {what} is {box}.",
    "Therefore, {box}.",
    "The final answer is {box}.",
    "Therefore, {what} is {box}.",
    "Thus, {what} is {box}.",
    "We conclude that {what} is {box}.",
    "# Answer\n\n{box}",
)
ASKS = (
    "We are asked for {what}.",
    "The question is about {what}.",
    "We want to find {what}.",
    "Let us find {what}.",
    "Our goal is {what}.",
    "The problem asks for {what}.",
    "We need {what} in the end.",
)
RECALLS = (
    "As found, {what} is {res}.",
    "Recall that {what} is {res}.",
    "To repeat, {what} is {res}.",
    "As we have seen, {what} is {res}.",
    "So far we know that {what} is {res}.",
    "Again, {what} is {res}.",
    "We have already found that {what} is {res}.",
)
REPEATS = (
    "The problem says {v} {noun}.",
    "Note that we have {v} {noun}.",
    "As given, {v} {noun}.",
    "Remember: {v} {noun}.",
)
DETOURS = (
    "{there}, and {back} again.",
    "{there}; then {back}.",
    "Adding and taking away changes nothing: {there} and {back}.",
    "First {there}, then back: {back}.",
)
ASIDES = (
    "By the way, {eq}.",
    "As an aside, {eq}.",
    "It is also true that {eq}.",
    "Incidentally, {eq}.",
    "One may also note that {eq}.",
    "For interest only: {eq}.",
)
PARITIES = (
    "Note that {v} is {parity}.",
    "The number {v} is {parity}.",
    "By the way, {v} is {parity}.",
    "Observe that {v} is an {parity} number.",
)
OUTLINES = (
    "First we find {first}, then {what}.",
    "From {first} we shall get {what}.",
    "Start with {first}; {what} follows.",
    "We find {first} first and then {what}.",
    "To get {what}, we begin with {first}.",
    "The plan: {first}, and then {what}.",
)
