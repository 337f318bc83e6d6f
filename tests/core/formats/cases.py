"""Published families of evaluators: how their checkpoints are written, small, and how their authors read them.

Each is a row of `CASES`. `test_conformance` compares ids, places and all modes with the authors' procedure, and
damages the checkpoint.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.scores import Outputs
from stepsight.core.trace import Trace
from tests.checkpoints import (
    LLAMA3,
    LLEMMA,
    QWEN2,
    pickled,
    random_model,
    write_actprm,
    write_checkpoint,
    write_evaluator,
    write_language_model,
    write_math_shepherd,
    write_pqm,
    write_qwen_prm,
    write_reasoneval,
    write_skywork,
    write_token_classifier,
)
from tests.core.formats.by_hand import TRACES, hidden_states, of_two, softmax
from tests.vocabularies import byte_level, sentencepiece

BEGIN = "<|begin_of_text|>"
LLAMA_TOKENS = (BEGIN, "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")
# Math-Shepherd's genuine ids.
TAG, PLUS, MINUS = 12902, 648, 387


@dataclass(frozen=True)
class FormatCase:
    """A family of a format.

    `write` writes its folders into the one that it gets, and returns what its authors' procedure needs; the
    evaluator is in `folder` there. `published` gives the token ids of a trace and the places that are read, if
    there is one input for all steps. `rows` gives the probabilities of the sub-steps up to `j`, shape (j + 1, 3).

    `heads` are tensors behind the backbone, `tokens` some that the tokenizer must have, and `shown` keys of
    config.json without which the folder is another family's. A text that spells one of `spelt` is only text.
    """

    format: str
    write: Callable[[Path], Any]
    rows: Callable[[Path, Any, Trace, int], Any] | None = None
    published: Callable[[Path, Trace], tuple[list[int], list[int]]] | None = None
    folder: str = ""
    outputs: Outputs = Outputs.VALIDITY
    traces: Sequence[Trace] = tuple(TRACES)
    heads: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    spelt: tuple[str, ...] = ()


def in_one_input(format, write, published, judge, **more):
    """A case whose steps are all read in one input: `judge(made, ids, places)` gives their probabilities."""

    @torch.inference_mode()
    def rows(folder, made, trace, j):
        ids, places = published(folder, trace)
        return judge(made, ids, places[: j + 1])

    return FormatCase(format, write, rows, published, **more)


def tokenizer_in(folder):
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def places_of(ids, token):
    return [place for place, number in enumerate(ids) if number == token]


def numbered(steps):
    """A step that begins with "Step 1:" keeps it."""
    return [step if step.startswith("Step ") else f"Step {number}: {step}" for number, step in enumerate(steps, 1)]


def without(traces, *tokens):
    """The traces that spell none of these, which are tokens for the authors and only text for us."""
    return [trace for trace in traces if not any(token in step for step in trace.substeps for token in tokens)]


def sigmoid_of(value):
    return of_two((1 / (1 + torch.exp(-value.double()))).float().numpy())


# ReasonEval.


def official(size):
    """Ids and read positions by the official procedure: everything is turned into tokens at once, the separators
    are taken out, and each marks the token before it, counted without separators; for 7B the token that begins an
    input is a separator too, and put back in front, which moves the tokens and not the marks."""

    def published(folder, trace):
        tokenizer = tokenizer_in(folder)
        pad = "<s>" if size == "7B" else "</s>"
        text = f"Question:\n{trace.problem}\nAnswer:\nLet's think step by step.\n{pad}"
        ids, marks = [], []
        for token in tokenizer.encode(text + "".join(step + pad for step in trace.substeps)).ids:
            if token == tokenizer.token_to_id(pad):
                marks.append(len(ids) - 1)
            else:
                ids.append(token)
        return ([1, *ids], marks[2:]) if size == "7B" else (ids, marks[1:])

    return published


def three_classes(made, ids, places):
    backbone, head = made
    logits = hidden_states(backbone, ids)[places] @ head["score_head.weight"].T + head.get("score_head.bias", 0)
    return softmax(logits.numpy())


def reasoneval(size, **changes):
    return in_one_input(
        "reasoneval",
        lambda folder: write_reasoneval(folder, size=size, **changes),
        official(size),
        three_classes,
        outputs=Outputs.THREE_WAY,
        heads=("score_head.weight",) if size == "7B" else ("score_head.weight", "score_head.bias"),
        shown=("score_dimension",) if size == "7B" else ("score_dim",),
        # <unk>, <s> and </s>.
        spelt=("<s>", "</s>"),
    )


# Qwen2.5-Math-PRM and ActPRM: the chat template as one text.


def conversation(system, token, *, strip=False):
    def published(folder, trace):
        tokenizer = tokenizer_in(folder)
        steps = [step.strip() if strip else step for step in trace.substeps]
        turns = [("system", system), ("user", trace.problem), ("assistant", token.join(steps) + token)]
        ids = tokenizer.encode("".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in turns)).ids
        return ids, places_of(ids, tokenizer.encode(token).ids[0])

    return published


def two_layers(made, ids, places):
    backbone, head = made
    inner = (hidden_states(backbone, ids)[places] @ head["score.0.weight"].T + head["score.0.bias"]).clamp(min=0)
    return of_two(softmax((inner @ head["score.2.weight"].T + head["score.2.bias"]).numpy())[:, 1])


def by_head(head, states):
    """The sigmoid of each head, computed on its own."""
    results = []
    for number in range(len(head["score.model.nn1.bias"])):
        x = states.double()
        for name in ("nn1", "nn2", "nn_out"):
            weight, bias = (head[f"score.model.{name}.{part}"][number].double() for part in ("weight", "bias"))
            x = x @ weight + bias
            x = x.clamp(min=0) if name != "nn_out" else x
        results.append(1 / (1 + torch.exp(-x[:, 0])))
    return torch.stack(results)


def mean_of_heads(made, ids, places):
    backbone, head = made
    return of_two(by_head(head, hidden_states(backbone, ids)[places]).mean(0).float().numpy())


def actprm(token, **changes):
    system = (
        "You are a helpful and harmless assistant. You should think step-by-step and put your final answer within "
        "\\boxed{}."
    )
    return in_one_input(
        "ensemble-prm",
        lambda folder: write_actprm(folder, **changes),
        conversation(system, token, strip=True),
        mean_of_heads,
        traces=[*TRACES, Trace.of(" What? ", [" a \n", "b"])],
        heads=() if changes else ("score.model.nn1.weight", "score.model.nn_out.bias"),
        tokens=() if changes else ("<extra_0>",),
        shown=() if changes else ("architectures",),
    )


# Value heads.


def skywork(folder, trace):
    """The beginning as one text, then each line and its line break. The place of each step's last line break."""
    tokenizer = tokenizer_in(folder)
    ids = tokenizer.encode(f"<|endoftext|>{trace.problem}\n").ids
    line_break = tokenizer.encode("\n").ids[-1]
    flags = []
    for line in "\n".join(trace.substeps).split("\n"):
        ids += (tokenizer.encode(line).ids if line else []) + [line_break]
        flags.append(len(ids) - 1)
    lasts = np.cumsum([step.count("\n") + 1 for step in trace.substeps]) - 1
    return ids, [flags[last] for last in lasts]


def value_of(made, ids, places):
    model, head = made
    hidden = model(input_ids=torch.tensor([ids]), output_hidden_states=True).hidden_states[-1][0, places]
    return sigmoid_of(hidden @ head["v_head.summary.weight"][0] + head["v_head.summary.bias"])


def on_one_line(folder, trace):
    return skywork(folder, Trace.of(trace.problem, [step.strip().replace("\n", " ") for step in trace.substeps]))


def write_whole_pqm(folder):
    made = write_pqm(folder / "PQM", folder / "base")
    (folder / "PQM" / "stepsight.json").write_text(json.dumps({"base": str(folder / "base")}))
    return made


def pqm(folder, trace):
    tokenizer = tokenizer_in(folder.parent / "base")
    tokenizer.add_special_tokens(["[PRM]"])
    query = (
        "Below is an instruction that describes a task.\nWrite a response that appropriately completes the "
        f"request.\n\n### Instruction:\n{trace.problem}\n\n### Response: Let's think step by step"
    )
    steps = numbered([step.strip() for step in trace.substeps])
    ids = tokenizer.encode(f"{query}\n" + " [PRM]\n".join(steps) + " [PRM]", add_special_tokens=False).ids
    return ids, places_of(ids, tokenizer.token_to_id("[PRM]"))


# Easy-to-hard's reward models on Llemma.

LLEMMA_NAME = "llemma-7b-prm-prm800k-level-1to3-hf"


def write_llemma(folder, tokenizer_folder=None, card=None):
    """Pickled shards whose head is two rows repeated, and no tokenizer, which is in a folder apart."""
    tokenizer_folder = tokenizer_folder or folder / "llemma_7b"
    folder, tokenizer = folder / LLEMMA_NAME, sentencepiece()
    size = tokenizer.get_vocab_size() + tokenizer.get_vocab_size() % 2
    model = random_model(LLEMMA | {"vocab_size": size}, AutoModelForCausalLM)
    model.lm_head.weight.data = torch.randn(2, LLEMMA["hidden_size"]).repeat(size // 2, 1)
    card = {"tokenizer": str(tokenizer_folder)} | (card or {})
    config = LLEMMA | {"vocab_size": size}
    write_checkpoint(folder, config, model.state_dict(), tokenizer, {"bos_token": "<s>"}, card)
    tokenizer_folder.mkdir(exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).rename(tokenizer_folder / name)
    pickled(folder, shards=3)
    return model


def llemma(folder, trace):
    tokenizer = tokenizer_in(folder.parent / "llemma_7b")
    text = f"# Question\n\n{trace.problem}\n\n# Solution\n\n" + "".join(f"{step}\n\n" for step in trace.substeps)
    ids = tokenizer.encode(text).ids
    line_break = tokenizer.token_to_id("<0x0A>")
    firsts = [place for place in range(len(ids) - 1) if ids[place] == ids[place + 1] == line_break]
    # Behind the headings' and the problem's.
    return ids, firsts[3:]


# Two tokens.


def math_shepherd(folder, trace):
    ids = tokenizer_in(folder).encode(
        f"{trace.problem} " + "\n".join(f"{step} ки" for step in numbered(trace.substeps))
    ).ids  # fmt: skip
    return ids, places_of(ids, TAG)


def openrlhf(folder, trace):
    """Its trainer turns the text of Math-Shepherd's data into tokens without special ones, and reads at the tag."""
    ids, places = math_shepherd(folder, trace)
    assert ids[0] == 1
    return ids[1:], [place - 1 for place in places]


def plus_or_minus(made, ids, places):
    backbone, head = made
    logits = (hidden_states(backbone, ids) @ head.T)[:, [PLUS, MINUS]].numpy()
    return of_two(softmax(logits)[places, 0])


def math_psa(trace):
    return f"{trace.problem} " + " ".join(f"{step} \n\n\n\n\n" for step in numbered(trace.substeps))


def versa_prm(trace):
    return f"{trace.problem.strip()} \n\n" + "".join(f"{step.strip()} \n\n\n\n" for step in trace.substeps)


def er_prm(trace):
    return f"{trace.problem} " + "".join(f"{step} ки" for step in numbered(trace.substeps))


# By the name of the repository: its kind, the text of an input, the tag, and the texts for right and wrong.
TWO_TOKEN = {
    "Math-psa": (QWEN2, math_psa, " \n\n\n\n\n", " +", " -"),
    "VersaPRM": (LLAMA3, versa_prm, " \n\n\n\n", "+", "-"),
    "Qwen-PRM800K": (QWEN2, versa_prm, " \n\n\n\n", "+", "-"),
    "dPRM-8B": (LLAMA3, versa_prm, " \n\n\n\n", "+", "-"),
    "dPRM-14B": (QWEN2, versa_prm, " \n\n\n\n", "+", "-"),
    "Llama3.1-Math-PRM": (LLAMA3, er_prm, " ки", " +", " -"),
}


def tokenizer_of(config):
    learnt = (" \n\n\n\n\n", " \n\n\n\n", " \n\n", " +", " -", " ки", "+", "-")
    if config is LLAMA3:
        return byte_level((BEGIN, "<|eot_id|>"), added=(), bos=BEGIN, learnt=learnt)
    return byte_level(learnt=learnt)


def write_two_token(folder, name, card=None):
    """A family's checkpoint. Returns the model, and the tokens for right and wrong."""
    config, _, _, *texts = TWO_TOKEN[name]
    tokenizer = tokenizer_of(config)
    model = write_language_model(
        folder / name, config, tokenizer, {"bos_token": BEGIN} if config is LLAMA3 else {}, card
    )
    return model, [tokenizer.encode(text).ids[-1] for text in texts]


def two_token(name):
    _, text, tag, _, _ = TWO_TOKEN[name]

    def published(folder, trace):
        tokenizer = tokenizer_in(folder)
        ids = tokenizer.encode(text(trace)).ids
        return ids, places_of(ids, tokenizer.encode(tag).ids[-1])

    return published


def first_of_two(made, ids, places):
    model, candidates = made
    return of_two(softmax(model(torch.tensor([ids])).logits[0].numpy()[places][:, candidates])[:, 0])


def first_of_all(made, ids, places):
    model, candidates = made
    return of_two(softmax(model(torch.tensor([ids])).logits[0].numpy()[places])[:, candidates[0]])


def two_token_case(name, **more):
    return in_one_input(
        "two-token",
        lambda folder: write_two_token(folder, name),
        two_token(name),
        first_of_two,
        folder=name,
        traces=[*TRACES, Trace.of("A  b\nc", ["x  y", "+ - +", "1\n\n2", "é"])],
        **more,
    )


# RLHFlow's chats: Llama 3's template, and the parts of Llama 3.1's that such a chat uses.
PLAIN = (
    "{% for message in messages %}{% set content = '<|start_header_id|>' + message['role'] + "
    "'<|end_header_id|>\n\n' + message['content'] | trim + '<|eot_id|>' %}"
    "{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}"
)
DATED = (
    '{{- bos_token }}{%- if not date_string is defined %}{%- set date_string = "26 Jul 2024" %}{%- endif %}'
    '{{- "<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\nToday Date: " + '
    "date_string + \"\n\n<|eot_id|>\" }}{%- for message in messages %}{{- '<|start_header_id|>' + "
    "message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' }}{%- endfor %}"
)
CHATS = {"Llama3.1-8B-PRM-Mistral-Data": PLAIN, "Llama3.1-8B-PRM-Deepseek-Data": DATED}


def write_chat(folder, name, template=None, card=None):
    tokenizer = byte_level(LLAMA_TOKENS, added=(), bos=BEGIN, learnt=("\n\n", "+", "-"))
    special = {"bos_token": BEGIN, "chat_template": template or CHATS[name]}
    return write_language_model(folder / name, LLAMA3, tokenizer, special, card)


@torch.inference_mode()
def call_by_call(folder, model, trace, j, *, everything=False):
    """The authors' loop: the chat up to each step, always answered by +, read at the third token from the end."""
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"),
        bos_token=BEGIN,
        chat_template=json.loads((folder / "tokenizer_config.json").read_text())["chat_template"],
    )
    candidates = [tokenizer.encode(sign)[-1] for sign in ("+", "-")]
    chat, scores = [], []
    for number, step in enumerate(trace.substeps[: j + 1]):
        text = f"{trace.problem} {step.strip()}" if number == 0 else step.strip()
        chat += [{"role": "user", "content": text}, {"role": "assistant", "content": "+"}]
        ids = tokenizer.apply_chat_template(chat, return_dict=False)
        logits = model(torch.tensor([ids])).logits[0, -3].numpy()
        scores.append(softmax(logits)[candidates[0]] if everything else softmax(logits[candidates])[0])
    return of_two(np.array(scores))


def chat_case(name, **more):
    traces = [*TRACES, Trace.of("What is 2 + 3?", [" 2 + 3 = 5.\n", "\n\nSo\n\n5."])]
    return FormatCase(
        "chat-two-token",
        lambda folder: write_chat(folder, name),
        call_by_call,
        folder=name,
        traces=traces,
        spelt=LLAMA_TOKENS,
        **more,
    )


# PathFinder-PRM.

PATHFINDER = "PathFinder-PRM-7B"
MARKS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<+>", "<->", "<extra>")
_PATHFINDER_TEMPLATE = (
    "{% if messages[0]['role'] != 'system' %}<|im_start|>system\nBe helpful.<|im_end|>\n{% endif %}"
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_pathfinder(folder, **changes):
    tokenizer = byte_level(MARKS, added=(), learnt=("\n\n", ".\n\n", "Step", ": "))
    special = {"chat_template": _PATHFINDER_TEMPLATE, "pad_token": "<|endoftext|>", "eos_token": "<|im_end|>"}
    config = QWEN2 | {"max_position_embeddings": 1024} | changes
    return _divided(folder / PATHFINDER, write_language_model(folder / PATHFINDER, config, tokenizer, special))


@torch.inference_mode()
def _divided(folder, model):
    """The model with rows of <+> and <-> that divide the places where they are read, four to one: random weights
    would say the same everywhere."""
    evaluator = load_evaluator(folder)
    states = torch.cat(
        [
            model.base_model(torch.tensor(call.ids)[None])[0][0, call.reads]
            for trace in TRACES
            for step in evaluator.encode(trace).calls
            for call in step
        ]
    )
    mean = states.mean(0)
    torch.manual_seed(5)
    row = torch.randn(len(mean))
    sides = states @ row
    row += (0.8 * sides.std() - sides.mean()) * mean / (mean @ mean)
    row /= (states @ row).std()
    good, bad = (evaluator.encoder.tokenizer.token_to_id(token) for token in ("<+>", "<->"))
    model.lm_head.weight[good], model.lm_head.weight[bad] = row, -row
    save_file(model.state_dict(), folder / "model.safetensors", {"format": "pt"})
    return model


@torch.inference_mode()
def pathfinder_reward(folder, model, problem, steps):
    """The probability of <+> for correctness after both other marks, or 0 where one of them is <->."""
    path = str(folder / "tokenizer.json")
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=path, chat_template=_PATHFINDER_TEMPLATE)
    good, bad, mask = (tokenizer.convert_tokens_to_ids(token) for token in ("<+>", "<->", "<extra>"))
    question = (
        "You are a Math Teacher. Given a question and a student's solution, evaluate the mathematical correctness, "
        "logic consistency of the current step and whether it will lead to the correct final solution\n\n "
        f"Question: {problem}"
    )

    def logits(answer):
        chat = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
        ids = tokenizer.apply_chat_template(chat, return_dict=False)
        places = [place - 1 for place in places_of(ids, mask)]
        return model(torch.tensor([ids])).logits[0, places][:, [good, bad]].float()

    before = "\n\n".join(steps[:-1]) + "\n\n" if len(steps) > 1 else ""
    answer = f"{before}Current Step: {steps[-1]} Math reasoning: <extra>, Consistency: <extra>"
    filled = ["<+>" if number == 0 else "<->" for number in logits(answer).argmax(-1)]
    if "<->" in filled:
        return 0.0
    for token in filled:
        answer = answer.replace("<extra>", token, 1)
    return logits(f"{answer}, Correctness: <extra>").softmax(-1)[0, 0].item()


def pathfinder(folder, model, trace, j):
    return of_two(
        [pathfinder_reward(folder, model, trace.problem, trace.substeps[: count + 1]) for count in range(j + 1)]
    )


# Implicit PRMs: two language models, the boundaries counted as in the authors' code.

_EURUS_TEMPLATE = (
    "{% for message in messages %}{% if loop.first %}<|im_start|>system\nThink.<|im_end|>\n{% endif %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
)
_LLAMA_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|start_header_id|>{{ message['role'] }}<|end_header_id|>\n\n"
    "{{ message['content'] | trim }}<|eot_id|>{% endfor %}"
)
_PAIR_TRACES = [*TRACES, Trace.of("q?", ["5.", "a\n\nb", "x "]), Trace.of("q", ["(1)", "So $18.", "é"])]


def write_pair(folder, coefficient=0.02, tokenizer=None, chat_template=_EURUS_TEMPLATE, **card):
    """The evaluator's folder and its reference's, with the same tokenizer and other weights."""
    tokenizer = tokenizer or byte_level(learnt=("\n\n", ".\n\n", "Step", "assistant"))
    special = {"chat_template": chat_template, "pad_token": "<|endoftext|>", "bos_token": BEGIN}
    card = {"format": "log-ratio", "reference": str(folder / "reference"), "coefficient": coefficient} | card
    model = write_language_model(folder / "prm", QWEN2, tokenizer, special, card)
    config = QWEN2 | {"vocab_size": tokenizer.get_vocab_size()}
    reference = random_model(config, AutoModelForCausalLM, seed=1)
    write_checkpoint(folder / "reference", config, reference.state_dict(), tokenizer, special)
    return model, reference


def write_llama_pair(folder):
    tokenizer = byte_level(LLAMA_TOKENS, added=(), bos=BEGIN, learnt=("\n\n", ".\n\n", "Step", "assistant"))
    return write_pair(folder, tokenizer=tokenizer, chat_template=_LLAMA_TEMPLATE)


@torch.inference_mode()
def _sums(models, ids, bounds, coefficient):
    """The sigmoid of each step's sum of log-ratios, for the whole trace in one pass."""
    ids = torch.tensor([ids])
    logs = [
        model(ids).logits[:, :-1].double().log_softmax(-1).gather(2, ids[:, 1:, None])[0, :, 0] for model in models
    ]
    reward = coefficient * (logs[0] - logs[1])
    reward[: bounds[0]] = 0
    values = torch.sigmoid(reward.cumsum(0)[bounds[1:]]).float().numpy()
    # No sum is so large that its sigmoid would hide what it is.
    assert ((values > 0.01) & (values < 0.99)).all()
    return values


def eurus(folder, models, trace, j, coefficient=0.02):
    """By the script for ProcessBench."""
    path = str(folder / "tokenizer.json")
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=path, chat_template=_EURUS_TEMPLATE)
    steps = numbered(trace.substeps)

    def chat(count, **options):
        solution = "\n\n".join(steps[:count])
        turns = [{"role": "user", "content": trace.problem}, {"role": "assistant", "content": solution}]
        return tokenizer.apply_chat_template(turns, **options)

    bounds = []
    for count in range(len(steps) + 1):
        text = chat(count, tokenize=False).strip() + ("\n\n" if 0 < count < len(steps) else "")
        bounds.append(len(tokenizer.encode(text, add_special_tokens=False)) - 2)
    return of_two(_sums(models, chat(len(steps), return_dict=False), bounds, coefficient)[: j + 1])


def implicit_on_llama(folder, models, trace, j):
    """By the authors' code for ImplicitPRM, which removes Llama's token at the end of a turn. Its mask, which is of
    tokens, is shifted by one against the log-probabilities."""
    path = str(folder / "tokenizer.json")
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=path, chat_template=_LLAMA_TEMPLATE, bos_token=BEGIN)
    steps = [f"Step {number}: {step.strip()}" for number, step in enumerate(trace.substeps, start=1)]

    def tokens(count):
        solution = "\n\n".join(steps[:count])
        turns = [{"role": "user", "content": trace.problem}, {"role": "assistant", "content": solution}]
        text = tokenizer.apply_chat_template(turns, tokenize=False).strip()
        if count < len(steps):
            text = text.removesuffix("<|eot_id|>") + ("\n\n" if count else "")
        return tokenizer.encode(text, add_special_tokens=False)

    first, *marks = [len(tokens(count)) - 2 for count in range(len(steps) + 1)]
    return of_two(_sums(models, tokens(len(steps)), [first - 1, *marks], 0.02)[: j + 1])


def write_plain_llemma(folder):
    write_language_model(folder, LLEMMA, sentencepiece(), {"bos_token": "<s>"}, {"format": "llemma-prm"})


CASES = {
    "ReasonEval-7B": reasoneval("7B"),
    "ReasonEval-34B": reasoneval("34B"),
    "ReasonEval-7B, narrow": reasoneval("7B", sliding_window=6),
    "Qwen2.5-Math-PRM": in_one_input(
        "qwen-prm",
        write_qwen_prm,
        conversation("Please reason step by step, and put your final answer within \\boxed{}.", "<extra_0>"),
        two_layers,
        traces=[
            *TRACES,
            Trace.of("\n q \n", ["\n\na", " b \n", "c\r\n"]),
            Trace.of("e\u0301", ["e\u0301\u0301 x"]),
        ],
        heads=("score.0.weight", "score.0.bias", "score.2.weight", "score.2.bias"),
        tokens=("<extra_0>",),
        shown=("architectures",),
        spelt=("<|im_start|>", "<|im_end|>", "<extra_0>"),
    ),
    "Skywork": in_one_input(
        "value-head",
        write_skywork,
        skywork,
        value_of,
        traces=[*TRACES, Trace.of("One\ntwo?\n", ["a\nb\n\nc", "\nd", "e\n", ["f\n\n", " g"]])],
        heads=("v_head.summary.weight", "v_head.summary.bias"),
    ),
    "Skywork, on one line": in_one_input(
        "value-head",
        lambda folder: write_skywork(folder, card={"template": {"lines": "spaces", "strip": "steps"}}),
        on_one_line,
        value_of,
        traces=[*TRACES, Trace.of("q", ["a\nb ", " c"])],
    ),
    "PQM": in_one_input("value-head", write_whole_pqm, pqm, value_of, folder="PQM"),
    "ActPRM": actprm("<extra_0>"),
    "ActPRM, another separator": actprm(" \n\n", rr_token=None),
    "Llemma": FormatCase("llemma-prm", write_plain_llemma, heads=("lm_head.weight",), shown=("architectures",)),
    "Llemma's repository": in_one_input(
        "llemma-prm",
        write_llemma,
        llemma,
        lambda model, ids, places: sigmoid_of(model(torch.tensor([ids])).logits[0].double().mean(-1)[places]),
        folder=LLEMMA_NAME,
        # Steps with two line breaks in a row are two steps for the authors' count.
        traces=[
            TRACES[0],
            Trace.of("What is\n2 + 3?", ["2 + 3 = 5.", ["So the answer\nis 5.", "Check: 5 - 3 = 2."]]),
            Trace.of("三 + é = Ω?", ["√2 ≠ 三.", "a"]),
        ],
    ),
    "classifier": FormatCase(
        "token-classification",
        lambda folder: write_token_classifier(folder, "llama"),
        heads=("score.weight",),
        shown=("architectures",),
    ),
    "encoder": FormatCase(
        "token-classification",
        lambda folder: write_token_classifier(folder, "modernbert"),
        heads=("classifier.weight",),
    ),
    "ours": FormatCase("stepsight", write_evaluator, heads=("score.weight",)),
    "Math-Shepherd": in_one_input(
        "math-shepherd",
        lambda folder: write_math_shepherd(folder, card={"format": "math-shepherd"}),
        math_shepherd,
        plus_or_minus,
        heads=("lm_head.weight",),
        tokens=("▁ки", "▁+"),
        shown=("architectures",),
    ),
    "OpenRLHF's Math-Shepherd": in_one_input(
        "math-shepherd",
        lambda folder: write_math_shepherd(folder / "Mistral-7b-PRM-Math-Shepherd"),
        openrlhf,
        plus_or_minus,
        folder="Mistral-7b-PRM-Math-Shepherd",
    ),
    **{name: two_token_case(name) for name in TWO_TOKEN},
    "VersaPRM": two_token_case("VersaPRM", heads=("lm_head.weight",), shown=("architectures",)),
    "Llama3.1-8B-PRM": chat_case(
        "Llama3.1-8B-PRM-Mistral-Data", heads=("lm_head.weight",), shown=("architectures",)
    ),
    "Llama3.1-8B-PRM, dated": chat_case("Llama3.1-8B-PRM-Deepseek-Data"),
    "PathFinder-PRM": FormatCase(
        "masked-tokens",
        write_pathfinder,
        pathfinder,
        folder=PATHFINDER,
        traces=[*TRACES, Trace.of("q?", ["5.\n\n", " a\n\nb", "x "])],
        heads=("lm_head.weight",),
        tokens=("<extra>", "<->"),
        shown=("architectures",),
        spelt=MARKS,
    ),
    "EurusPRM": FormatCase(
        "log-ratio",
        write_pair,
        eurus,
        folder="prm",
        traces=_PAIR_TRACES,
        heads=("lm_head.weight",),
        shown=("architectures",),
    ),
    "ImplicitPRM on Llama": FormatCase(
        "log-ratio",
        write_llama_pair,
        implicit_on_llama,
        folder="prm",
        traces=[trace for trace in _PAIR_TRACES if not trace.substeps[0].startswith("Step")],
    ),
}
