"""The commands, options, parameters, keys and files of versions before 1.0.0 that no longer exist, and what to use
instead.

Each is one line here and one row in docs/recorded/removed.md, which names the last commit that had it.
"""

from collections.abc import Collection, Mapping, Sequence

COMMAND_LINE: dict[str, str] = {
    "mcp": "Use the HTTP API of stepsight app instead (docs/api.md).",
    "datasets --archived": "All datasets are listed; there is no archive.",
    "campaign --archived": "All campaigns are listed; there is no archive.",
    "views": "Bookmark the list in Browse: its address holds all filters.",
    "export --format croissant": "Export a folder for the library datasets with --format datasets.",
    "export --format opentelemetry": "Export the judgments with --format jsonl.",
    "export --format scout": "Export the labels with --format jsonl.",
    "export --format potato": "Export the labels with --format jsonl.",
    "score --engine": "On several machines, run jobs with stepsight work, or launch the command with torchrun.",
    "evaluate --engine": "On several machines, run jobs with stepsight work, or launch the command with torchrun.",
    "filter --engine": "Run stepsight score --dataset on several machines first; filter uses the scores.",
    "rerank --scores": "Import the candidates, and their scores with import-scores, and give --dataset.",
    "filter --scores": "Leave it out: the store has the scores, and every choice uses them.",
    "dependence": "Evidence leaves steps out of a trace, and evaluate measures imported scores without a step.",
    "card": "Write the report of one evaluator with stepsight report --evaluator, or print it with evaluate.",
    "demo --space": "Serve the demo with stepsight demo, or read-only with stepsight app --public-read-only.",
    "report --figures": "Results saves each figure as SVG, PNG or PDF.",
    "score --hindsight-budget": "Leave it out, or score long solutions with --mode offline or --window.",
    "* --first-copy": "Leave it out: the controls of reading twice are answered in docs/recorded/readings.md.",
    "* --reading twice": "Score with --reading both-orders, which lets later steps count too.",
    "export --format processbench": "Export the labels with --format jsonl, prm800k or stepwise.",
    "export --format prmbench": "Export the labels with --format jsonl, prm800k or stepwise.",
    "campaign --planted-share": "Accuracy on hidden gold items (--gold-rate) shows who confirms without reading.",
    "campaign --ordering information": "Have the most disputed traces labelled first with --ordering disagreement.",
    "campaign --ordering change": "Have the most disputed traces labelled first with --ordering disagreement.",
    "campaign --qualification-right": "stepsight campaign show has the result of --qualification-items.",
    "* --by-section": "Leave it out: critics judge whole solutions.",
    "* --critic r-prm": "Use it with --critic steps, or with a preset of your own (docs/evaluators.md).",
    "* --critic genprm": "Use it with --critic steps, or with a preset of your own (docs/evaluators.md).",
    "* --convention": "Leave it out: gold stays as the benchmark has it.",
    "synth --links": "Leave it out, or train with consequences: true, which labels the steps after an error.",
    "import agent": "Import the file as chat: calls of tools and their results are part of the steps.",
    "import atif": "Write the trajectory as a chat, and import it as chat.",
    "import otel": "Write the conversation as a chat, and import it as chat.",
    "import agentprocessbench": "Import the messages as chat; labels of turns go with the plain format.",
    "math500 --engine": "Leave it out: Transformers writes the answers.",
    "export --exposed": "Leave it out: nobody is shown what an open blind campaign hides (docs/annotate.md).",
    "agreement --exposed": "Leave it out: nobody is shown what an open blind campaign hides (docs/annotate.md).",
    "export --format agentprocessbench": "Export with --format jsonl.",
}
"""By words of a command line: a command, or a command followed by an option, or an option and its value. `*` is any
command."""

PARAMETERS: dict[str, str] = {
    "convention": "Leave it out: gold stays as the benchmark has it.",
    "exposed": "Leave it out: nobody is shown what an open blind campaign hides (docs/annotate.md).",
    "sections": "Leave it out: all steps of a solution stand in one list.",
    "value": "Leave it out: the matrix and the curve show validity.",
    "gap=placeholder": "Leave it out: a missing step is left out, and nothing stands in its place.",
    "card": "The page of a dataset has all evaluators; stepsight report --evaluator writes one.",
    "view=candidates": "The page of a trace has a link to the other solutions of its problem.",
    "gold=open": "Use gold=error: gold stays as the benchmark has it.",
    "gold=repaired": "Use gold=error: gold stays as the benchmark has it.",
    "by=repaired": "Leave it out: gold stays as the benchmark has it.",
    "outcomes=repaired": "Leave it out: gold stays as the benchmark has it.",
}
"""By the name of a parameter in the address of a page, or by its name and value."""

KEYS: dict[str, str] = {
    "controls": "Leave it out: the controls of reading twice are answered in docs/recorded/readings.md.",
    "head": "Leave it out: a new head reads the last layer.",
    "reading": "Leave it out: a solution is read once, or scored with --reading both-orders.",
    "readings": "Leave it out: a grid compares masks.",
    "objective": "Leave it out: a run learns the labels of steps.",
    "correct": "Leave it out: all labelled traces of a source are used.",
    "numbers": "Leave it out: in a tokenizer of its own, every digit is a token.",
    "by_section": "Leave it out: critics judge whole solutions.",
    "engine": "Leave it out: Transformers writes the answers.",
    "context": "Leave it out: a solution is judged by its problem and its steps.",
}
"""By the name of a key in a configuration or in an evaluator's folder."""

FILES: dict[frozenset[str], str] = {
    frozenset({"resourceSpans"}): "Write the conversation as a chat, and import it as chat.",
    frozenset({"schema_version", "agent", "steps"}): "Write the trajectory as a chat, and import it as chat.",
}
"""By the fields that every row of a kind of file has."""


def on_command_line(words: Sequence[str]) -> tuple[str, str] | None:
    """Return the removed command or option in `words`, as it is written on a command line, and its replacement, or
    None if there is none."""
    split = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
    for entry, replacement in COMMAND_LINE.items():
        command, *option = entry.split()
        places = range(1, len(split) - len(option) + 1)
        if command in ("*", *split[:1]) and any(split[place : place + len(option)] == option for place in places):
            return " ".join(option) or command, replacement
    return None


def as_file(fields: Collection[str]) -> str:
    """Return the replacement for a kind of file that can no longer be imported, or "" if rows with these fields are
    of no such kind."""
    return next((replacement for keys, replacement in FILES.items() if keys <= set(fields)), "")


def in_address(query: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, str]]:
    """Return the removed parameters in an address by name, each as it is written there, with its replacement."""
    written = {
        entry: name
        for name, values in query.items()
        for entry in (name, *(f"{name}={value}" for value in values))
        if entry in PARAMETERS
    }
    return {name: (entry, PARAMETERS[entry]) for entry, name in written.items()}
