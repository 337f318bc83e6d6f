"""Mistral's genuine tokenizer, from the tokenizer.model in the package mistral-common, in the families that use it.

The expected ids were made by their authors' procedures with Transformers 4.44.2, which is of their time.
"""

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
from transformers import AutoModelForTokenClassification

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.prompts.tokenizer_files import TokenizerFiles
from stepsight.core.trace import Trace
from tests.checkpoints import MISTRAL, random_model, write_checkpoint, write_math_shepherd, write_reasoneval
from tests.vocabularies import sentencepiece

TRACE = Trace.of(
    "Janet's ducks lay 16 eggs  per day.",
    ["She eats 3 + 4 = 7 eggs.", "So $x^2$ is 9.\n\nThen \\frac{1}{2}", "é 三."],
)
PROBLEM = [2997, 299, 28742, 28713, 281, 18352, 4897, 28705, 28740, 28784, 14636, 28705, 660, 1370, 28723]
STEPS = [
    [985, 317, 1449, 28705, 28770, 648, 28705, 28781, 327, 28705, 28787, 14636, 28723],
    [1537, 429, 28744, 28815, 28750, 28776, 349, 28705, 28774, 28723, 13, 13, 11341, 414, 1655, 28751, 28740, 1400,
     28750, 28752],
    [1233, 28705, 29492, 28723],
]  # fmt: skip
TAG, LINE_BREAK, SPACE = 12902, 13, 28705


@pytest.fixture(scope="module")
def model():
    package = find_spec("mistral_common")
    if package is None:
        pytest.skip("the package mistral-common, which has Mistral's tokenizer, is not installed")
    return Path(package.submodule_search_locations[0], "data", "tokenizer.model.v1")


def load(folder, model):
    """The evaluator in a folder, with the genuine tokenizer.model in place of its tokenizer.json."""
    (folder / "tokenizer.json").unlink()
    shutil.copy(model, folder / "tokenizer.model")
    return load_evaluator(folder)


def test_math_shepherd_reads_each_step_at_the_tag(tmp_path, model):
    folder = tmp_path / "math-shepherd-mistral-7b-prm"
    write_math_shepherd(folder, vocab_size=32000)
    found = load(folder, model).encode(TRACE)
    # "Step 1:", then after a line break "Step 2:" and so on, each with a tag behind it.
    numbers = [[7268, SPACE, 28740, 28747], [13, 9977, SPACE, 28750, 28747], [13, 9977, SPACE, 28770, 28747]]
    parts = [[*number, *step, TAG] for number, step in zip(numbers, STEPS, strict=True)]
    expected = [1, *PROBLEM, *parts[0], *parts[1], *parts[2]]
    assert found.ids.tolist() == expected
    assert found.reads.tolist() == [place for place, number in enumerate(expected) if number == TAG]
    assert TokenizerFiles(folder).load().encode("+ -", add_special_tokens=False).ids == [648, 387]


def test_openrlhf_reads_math_shepherds_input_without_its_first_token(tmp_path, model):
    for name in ("math-shepherd-mistral-7b-prm", "Mistral-7b-PRM-Math-Shepherd"):
        write_math_shepherd(tmp_path / name, vocab_size=32000)
    theirs, ours = (load(folder, model).encode(TRACE) for folder in sorted(tmp_path.iterdir(), reverse=True))
    assert ours.ids.tolist() == theirs.ids.tolist()[1:] == [*PROBLEM, *ours.ids.tolist()[len(PROBLEM) :]]
    assert ours.reads.tolist() == [place - 1 for place in theirs.reads.tolist()]


def test_reasoneval_reads_each_step_at_the_token_before_its_last(tmp_path, model):
    write_reasoneval(tmp_path, tokenizer=sentencepiece(places={"▁ки": 31999}))
    found = load(tmp_path, model).encode(TRACE)
    before = [1, 22478, 28747, 13, 21650, *PROBLEM[1:], 13, 2820, 16981, 28747, 13]
    before += [8779, 28742, 28713, 1073, 3707, 486, 3707, 28723, 13]
    ends = [len(before) + sum(map(len, STEPS[: count + 1])) - 1 for count in range(3)]
    assert found.ids.tolist() == [*before, *STEPS[0], *STEPS[1], *STEPS[2]]
    assert found.reads.tolist() == [end - 1 for end in ends]


def test_a_token_classifier_of_trl_reads_each_step_at_its_line_break(tmp_path, model):
    folder = tmp_path / "Mistral-7B-v0.1-Math-Shepherd-PRM-0.1"
    config = MISTRAL | {"architectures": ["MistralForTokenClassification"], "vocab_size": 32000}
    network = random_model(config | {"num_labels": 2}, AutoModelForTokenClassification)
    write_checkpoint(folder, config, network.state_dict(), sentencepiece(), {"bos_token": "<s>"})
    found = load(folder, model).encode(TRACE)
    expected, reads = [1, *PROBLEM], []
    for step in STEPS:
        # TRL turns the separator into tokens alone, with the space that begins a text.
        expected += [*step, SPACE, LINE_BREAK]
        reads.append(len(expected) - 1)
    assert found.ids.tolist() == expected
    assert found.reads.tolist() == reads


def test_a_tokenizer_json_as_transformers_5_writes_it_is_refused(tmp_path, model):
    shutil.copy(model, tmp_path / "tokenizer.model")
    parts = json.loads(TokenizerFiles(tmp_path).load().to_str())
    parts["normalizer"]["normalizers"].pop(0)
    (tmp_path / "tokenizer.json").write_text(json.dumps(parts))
    (tmp_path / "tokenizer.model").unlink()
    with pytest.raises(Exception, match="as files written by Transformers 5 do"):
        TokenizerFiles(tmp_path).load()
