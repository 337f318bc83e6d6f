"""Built-in stepsight.json values for public step evaluators whose repositories have no such file.

Most of these evaluators are ordinary language models. Their config does not say that they judge steps, nor does it
give the prompt or the tokens for right and wrong. The values come from their authors' code; `docs/evaluators.md`
lists open questions. A folder's own stepsight.json overrides the values key by key. Does not need PyTorch.
"""

from collections.abc import Mapping
from typing import Any

Card = Mapping[str, Any]
"""The values of a stepsight.json."""

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

_CARDS: Mapping[str, Card] = {
    "Qwen2.5-Math-1.5B-Instruct-PRM-0.1": _LINE_BREAKS,
    "Qwen2.5-Math-7B-Instruct-PRM-0.1": _LINE_BREAKS,
    "plaguss/Qwen2.5-Math-1.5B-Instruct-PRM-0.2": _LINE_BREAKS,
    "Qwen2.5-Math-1.5B-Instruct-PRM-0.2": _BACKSLASHES,
    "Qwen2.5-Math-7B-Instruct-PRM-0.2": _BACKSLASHES,
    "VersaPRM": _VERSA_PRM,
    "VersaPRM-Aug": _VERSA_PRM,
    "VersaPRM-Base-3B": _VERSA_PRM,
    "VersaPRM-Base-8B": _VERSA_PRM,
    "VersaPRM-Math-Subset": _VERSA_PRM,
    "VersaPRM-Small-Subset": _VERSA_PRM,
    "Llama-PRM800K": _VERSA_PRM,
    "Qwen-PRM800K": _VERSA_PRM,
    "Math-psa": _MATH_PSA,
    "Llama3.1-Math-PRM": _ER_PRM,
    "PQM": _PQM,
    "Llama3.1-8B-PRM-Mistral-Data": _RLHFLOW,
    "Llama3.1-8B-PRM-Deepseek-Data": _RLHFLOW,
    "llemma-7b-prm-prm800k-level-1to3-hf": _LLEMMA,
    "llemma-7b-prm-metamath-level-1to3-hf": _LLEMMA,
    "llemma-7b-oprm-prm800k-level-1to3-hf": _LLEMMA,
    "EurusPRM-Stage1": _EURUS,
    "EurusPRM-Stage2": _EURUS,
    "ImplicitPRM_DPO": _IMPLICIT,
    "ImplicitPRM_CE": _IMPLICIT,
    "PathFinder-PRM-7B": {"format": "masked-tokens"},
    "Universal-PRM-7B": {"format": "prefix-value"},
    "Universal-PRM": {"format": "prefix-value"},
    "mistal-7b-prm-openrlhf": {"format": "math-shepherd"},
}
_FOLDED = {name.casefold(): card for name, card in _CARDS.items()}


def known_card(name: str) -> Card:
    """Return the built-in values for a repository, given as `NAME` or `OWNER/NAME`, or for a folder of that name.
    The result is empty if there are none."""
    name = name.casefold()
    return _FOLDED.get(name) or _FOLDED.get(name.rpartition("/")[2]) or {}


def with_known(name: str, own: Card) -> dict[str, Any]:
    """Merge the built-in values for `name` with `own`, the content of a folder's stepsight.json. Values in `own`
    take precedence.

    The built-in values are ignored if `own` names a different format.
    """
    known = known_card(name)
    if "format" in own and own["format"] != known.get("format", own["format"]):
        return dict(own)
    card = {**known, **own}
    if isinstance(own.get("template"), Mapping) and "template" in known:
        card["template"] = {**known["template"], **own["template"]}
    return card
