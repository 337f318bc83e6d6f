"""Built-in stepsight.json values for public step evaluators whose repositories have no such file.

Most of these evaluators are ordinary language models or token classifiers. Their config does not say that they
judge steps, nor does it give the prompt, the separator, or the tokens for right and wrong. The values come from
their authors' code and model cards; `docs/evaluators.md` lists open questions. A folder's own stepsight.json
overrides the values key by key. Does not need PyTorch.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.hubs.public import find_unstated

Card = Mapping[str, Any]
"""The values of a stepsight.json."""

_STATE = (
    "State it in a stepsight.json, in the model's folder or for the fetch (stepsight evaluators fetch --card),"
    " such as"
)
_EXAMPLES: Card = {"attention": "causal", "template": {"separator": "\n"}}
_LINE_BREAK: Card = {"template": {"separator": "\n"}}
_LINE_BREAKS: Card = {"template": {"separator": "\n\n"}}
# The commands that trained and evaluated these pass a literal backslash and n, twice.
_BACKSLASHES: Card = {"template": {"separator": r"\n\n"}}

_VERSA_PRM: Card = {
    "format": "two-token",
    "tokens": {"right": "+", "wrong": "-"},
    "template": {"prompt": "{problem} \n\n", "separator": " \n\n\n\n", "strip": "all"},
}
_MATH_PSA: Card = {
    "format": "two-token",
    "subfolder": "checkpoint-2127",
    "base": "Qwen/Qwen2.5-Math-7B-Instruct",
    "tokens": {"right": " +", "wrong": " -"},
    "template": {
        "prompt": "{problem} ",
        "step": "Step {number}: {step}",
        "separator": " \n\n\n\n\n",
        "between": " ",
    },
}
_ER_PRM: Card = {
    "format": "two-token",
    "tokens": {"right": " +", "wrong": " -"},
    "template": {"prompt": "{problem} ", "step": "Step {number}: {step}", "separator": " ки"},
}
_PQM: Card = {
    "format": "value-head",
    "subfolder": "zeta-2",
    "base": "deepseek-ai/deepseek-math-7b-base",
    "added_tokens": ["[PRM]"],
    "template": {
        "prompt": (
            "Below is an instruction that describes a task.\nWrite a response that appropriately completes the "
            "request.\n\n### Instruction:\n{problem}\n\n### Response: Let's think step by step\n"
        ),
        "bos": None,
        "step": "Step {number}: {step} ",
        "separator": "[PRM]",
        "separator_is": "token",
        "between": "\n",
        "joined": True,
        "strip": "steps",
        "lines": "kept",
    },
}
_LLEMMA: Card = {"format": "llemma-prm", "tokenizer": "EleutherAI/llemma_7b"}
_EURUS: Card = {"format": "log-ratio", "reference": "Qwen/Qwen2.5-Math-7B-Instruct"}
_IMPLICIT: Card = {"format": "log-ratio", "reference": "meta-llama/Llama-3.1-8B-Instruct"}
_RLHFLOW: Card = {"format": "chat-two-token", "tokens": {"right": "+", "wrong": "-"}}

# OpenRLHF's trainer adds no special tokens, unlike the code of Math-Shepherd's authors.
_OPENRLHF: Card = {"format": "math-shepherd", "template": {"bos": None}}

_CARDS: Mapping[str, Card] = {
    "trl-lib/Qwen2-0.5B-Reward-Math-Sheperd": _LINE_BREAK,
    "plaguss/Qwen2.5-0.5B-Math-Shepherd-PRM-0.2": _LINE_BREAK,
    "plaguss/Llama-3.1-8B-Math-Shepherd-PRM-0.2": _LINE_BREAK,
    "plaguss/Mistral-7B-v0.1-Math-Shepherd-PRM-0.1": _LINE_BREAK,
    "plaguss/Mistral-7B-v0.1-Math-Shepherd-PRM-0.2": _LINE_BREAK,
    "axolotl-ai-co/Qwen2.5-Math-PRM-7B": _LINE_BREAK,
    # Another model of that name, which its config describes.
    "Qwen/Qwen2.5-Math-PRM-7B": {},
    "jinachris/PURE-PRM-7B": _LINE_BREAK,
    "plaguss/Qwen2.5-Math-1.5B-Instruct-PRM-0.1": _LINE_BREAKS,
    "plaguss/Qwen2.5-Math-7B-Instruct-PRM-0.1": _LINE_BREAKS,
    "plaguss/Qwen2.5-Math-1.5B-Instruct-PRM-0.2": _LINE_BREAKS,
    "plaguss/Qwen2.5-Math-7B-Instruct-PRM-0.2": _LINE_BREAKS,
    "HuggingFaceH4/Qwen2.5-Math-1.5B-Instruct-PRM-0.2": _BACKSLASHES,
    "HuggingFaceH4/Qwen2.5-Math-7B-Instruct-PRM-0.2": _BACKSLASHES,
    "peiyi9979/math-shepherd-mistral-7b-prm": {"format": "math-shepherd"},
    "OpenRLHF/Mistral-7b-PRM-Math-Shepherd": _OPENRLHF,
    "plaguss/mistal-7b-prm-openrlhf": {"format": "math-shepherd"},
    "UW-Madison-Lee-Lab/VersaPRM": _VERSA_PRM,
    "UW-Madison-Lee-Lab/VersaPRM-Aug": _VERSA_PRM,
    "UW-Madison-Lee-Lab/VersaPRM-Base-3B": _VERSA_PRM,
    "UW-Madison-Lee-Lab/VersaPRM-Base-8B": _VERSA_PRM,
    "UW-Madison-Lee-Lab/VersaPRM-Math-Subset": _VERSA_PRM,
    "UW-Madison-Lee-Lab/VersaPRM-Small-Subset": _VERSA_PRM,
    "UW-Madison-Lee-Lab/Llama-PRM800K": _VERSA_PRM,
    "UW-Madison-Lee-Lab/Qwen-PRM800K": _VERSA_PRM,
    # Their code (db-Lee/Multi-RM) has VersaPRM's prompt, tag and answers.
    "dongboklee/dPRM-8B": _VERSA_PRM,
    "dongboklee/dPRM-14B": _VERSA_PRM,
    "openreasoner/Math-psa": _MATH_PSA,
    "HanningZhang/Llama3.1-Math-PRM": _ER_PRM,
    "Windy0822/PQM": _PQM,
    "RLHFlow/Llama3.1-8B-PRM-Mistral-Data": _RLHFLOW,
    "RLHFlow/Llama3.1-8B-PRM-Deepseek-Data": _RLHFLOW,
    "ScalableMath/llemma-7b-prm-prm800k-level-1to3-hf": _LLEMMA,
    "ScalableMath/llemma-7b-prm-metamath-level-1to3-hf": _LLEMMA,
    "ScalableMath/llemma-7b-oprm-prm800k-level-1to3-hf": _LLEMMA,
    "PRIME-RL/EurusPRM-Stage1": _EURUS,
    "PRIME-RL/EurusPRM-Stage2": _EURUS,
    "Windy0822/ImplicitPRM_DPO": _IMPLICIT,
    "Windy0822/ImplicitPRM_CE": _IMPLICIT,
    "declare-lab/PathFinder-PRM-7B": {"format": "masked-tokens"},
}
_BY_ID = {repo.casefold(): card for repo, card in _CARDS.items()}
_REPOS: defaultdict[str, list[str]] = defaultdict(list)
for _repo in _CARDS:
    _REPOS[_repo.partition("/")[2].casefold()].append(_repo)


def known_card(name: str) -> Card:
    """Return the built-in values for a repository, given as `OWNER/NAME`, or for a folder called `NAME`.

    The result is empty if there are none. A folder's name is ignored if several owners have a model of that name. A
    repository of another owner is not taken for the listed one.
    """
    if "/" not in name and len(repos := _REPOS.get(name.casefold(), [])) == 1:
        name = repos[0]
    return _BY_ID.get(name.casefold(), {})


def with_known(name: str, own: Card) -> dict[str, Any]:
    """Merge the built-in values for `name` with `own`, the content of a folder's stepsight.json. Values in `own`
    take precedence.

    The built-in values are ignored if `own` names a different format. Raises `UserError` if the list says that no
    source states how the evaluator is read, and `own` does not state it either.
    """
    _check_stated(name, own)
    known = known_card(name)
    if "format" in own and own["format"] != known.get("format", own["format"]):
        return dict(own)
    card = {**known, **own}
    if isinstance(own.get("template"), Mapping) and "template" in known:
        card["template"] = {**known["template"], **own["template"]}
    return card


def check_separator(place: str, card: Card) -> None:
    """Raise `UserError` if `card`, the values for a token classifier, names neither a separator nor another token
    at which steps are read. TRL's trainer accepts any text as separator and does not record it."""
    template = card.get("template")
    template = template if isinstance(template, Mapping) else {}
    if "separator" in template or template.get("read", "separator") != "separator":
        return
    raise UserError(
        f"{place}: its separator is not stated, the text after a step at which a token classifier judges it.",
        f"It is that of its training, step_separator in TRL. {_STATE} {_example(['template'])}.",
    )


def namesake(name: str) -> str:
    """Return the listed `OWNER/NAME` with the same name as the repository `name` but another owner, or ""."""
    repos = _REPOS.get(name.partition("/")[2].casefold(), [])
    return repos[0] if len(repos) == 1 and repos[0].casefold() != name.casefold() else ""


def _check_stated(name: str, own: Card) -> None:
    one = find_unstated(name)
    if one is None or all(key in own for key in one.asks or ("format",)):
        return
    reason = one.missing[0].lower() + one.missing[1:]
    if not one.asks:
        raise UserError(
            f"{name} cannot be read: {reason}",
            "Score with its authors' code, and read the scores with stepsight import-scores.",
        )
    raise UserError(f"{name} cannot be read as it is: {reason}", f"Ask its authors. {_STATE} {_example(one.asks)}.")


def _example(keys: Collection[str]) -> str:
    return json.dumps({key: value for key, value in _EXAMPLES.items() if key in keys})
