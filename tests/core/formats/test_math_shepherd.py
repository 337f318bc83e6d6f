"""Math-Shepherd's checkpoint against the published way to read it: one text, all logits, the tags found by id."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.scores import Outputs
from stepsight.core.trace import Trace
from tests.checkpoints import write_math_shepherd
from tests.core.formats.by_hand import TRACES, check_modes, hidden_states, of_two, softmax
from tests.messages import refused

TAG, PLUS, MINUS = 12902, 648, 387


def published(folder, trace):
    """The ids of the whole text, and where the tag is among them. A step that begins with "Step 1:" keeps it."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    steps = [
        f"{step} ки" if step.startswith("Step ") else f"Step {number}: {step} ки"
        for number, step in enumerate(trace.substeps, start=1)
    ]
    ids = tokenizer.encode(f"{trace.problem} " + "\n".join(steps)).ids
    return ids, [place for place, token in enumerate(ids) if token == TAG]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hub") / "math-shepherd-mistral-7b-prm"
    return folder, *write_math_shepherd(folder)


def test_the_tokenizer_has_the_genuine_ids(checkpoint):
    tokenizer = Tokenizer.from_file(str(checkpoint[0] / "tokenizer.json"))
    assert tokenizer.encode("+ -").ids[1:] == [PLUS, MINUS]
    assert tokenizer.encode("ки").ids[-1] == TAG
    assert load_file(checkpoint[0] / "model.safetensors")["lm_head.weight"].shape == (
        tokenizer.get_vocab_size(),
        24,
    )


def test_piece_by_piece_gives_the_tokens_of_the_whole_text(checkpoint):
    evaluator = load_evaluator(checkpoint[0])
    more = [
        Trace.of("A  b\nc", ["x  y", "\tz", "+ - +", "Step 12: q", "ки", "к и"]),
        Trace.of("ки?", ["1 + 1 = 2. Щ", "é\né", "$$x^2$$", "-", "…"]),
    ]
    for trace in [*TRACES, *more]:
        ids, tags = published(checkpoint[0], trace)
        encoded = evaluator.encode(trace)
        assert encoded.ids.tolist() == ids
        assert set(encoded.reads.tolist()) <= set(tags)
        assert encoded.reads.tolist() == encoded.ends.tolist()


def test_a_step_with_the_letters_of_the_tag_is_read_once(checkpoint):
    evaluator = load_evaluator(checkpoint[0])
    encoded = evaluator.encode(Trace.of("What is ки?", ["It is ки ки", "a"]))
    assert (encoded.ids == TAG).sum() == 5
    # What is read is the last of the first step, before its line break, and the last of all.
    newline = evaluator.encoder.tokenizer.token_to_id("<0x0A>")
    assert encoded.ids[encoded.reads[0] + 1] == newline
    assert encoded.reads.tolist() == [int(np.flatnonzero(encoded.ids == newline)[0]) - 1, len(encoded) - 1]


def test_a_step_that_ends_in_spaces_still_gets_its_tag(checkpoint):
    evaluator = load_evaluator(checkpoint[0])
    trace = Trace.of("q", ["a ", "b"])
    # In one text the space would join the tag's, and the step would have no score.
    assert len(published(checkpoint[0], trace)[1]) == 1
    encoded = evaluator.encode(trace)
    assert encoded.ids[encoded.reads].tolist() == [TAG, TAG]


def test_every_mode_equals_the_logits_of_the_whole_vocabulary(checkpoint):
    folder, backbone, head = checkpoint
    evaluator = load_evaluator(folder)
    assert (evaluator.format, evaluator.attention) == ("math-shepherd", "causal")
    assert evaluator.outputs == Outputs.VALIDITY
    assert "validity only" in evaluator.described

    def rows(trace, j):
        ids, tags = published(folder, trace)
        logits = (hidden_states(backbone, ids) @ head.T)[:, [PLUS, MINUS]].numpy()
        return of_two(softmax(logits)[tags[: j + 1], 0])

    check_modes(evaluator, rows)


def test_only_two_rows_of_the_head_are_kept(checkpoint):
    folder, backbone, head = checkpoint
    model = load_evaluator(folder).model
    assert sum(p.numel() for p in model.parameters()) == sum(p.numel() for p in backbone.parameters()) + 3 * 24 + 3
    torch.testing.assert_close(model.score.weight[[0, 2]], head[[MINUS, PLUS]])


def test_tied_embeddings_are_the_head(tmp_path):
    folder = tmp_path / "math-shepherd-mistral-7b-prm"
    backbone, _ = write_math_shepherd(folder, tie_word_embeddings=True)
    tensors = load_file(folder / "model.safetensors")
    del tensors["lm_head.weight"]
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    weight = load_evaluator(folder).model.score.weight
    torch.testing.assert_close(weight[2], backbone.embed_tokens.weight[PLUS])


def test_it_is_known_by_its_name_or_by_stepsight_json(tmp_path):
    write_math_shepherd(tmp_path / "prm")
    with refused():
        load_evaluator(tmp_path / "prm")
    (tmp_path / "prm" / "stepsight.json").write_text('{"format": "math-shepherd"}')
    assert load_evaluator(tmp_path / "prm").format == "math-shepherd"
    cache = tmp_path / "models--peiyi9979--math-shepherd-mistral-7b-prm" / "snapshots" / "0a1b"
    write_math_shepherd(cache)
    evaluator = load_evaluator(cache)
    assert (evaluator.name, evaluator.format) == ("math-shepherd-mistral-7b-prm", "math-shepherd")


def test_openrlhf_s_model_on_the_same_data_has_no_first_token(tmp_path):
    """Its trainer turns the text of Math-Shepherd's data into tokens without special ones, and reads at the tag."""
    folder = tmp_path / "Mistral-7b-PRM-Math-Shepherd"
    backbone, head = write_math_shepherd(folder)
    evaluator = load_evaluator(folder)
    assert evaluator.format == "math-shepherd"

    def rows(trace, j):
        ids, tags = published(folder, trace)
        assert ids[0] == evaluator.encoder.tokenizer.token_to_id("<s>")
        logits = (hidden_states(backbone, ids[1:]) @ head.T)[:, [PLUS, MINUS]].numpy()
        return of_two(softmax(logits)[[tag - 1 for tag in tags[: j + 1]], 0])

    check_modes(evaluator, rows)
