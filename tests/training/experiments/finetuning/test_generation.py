import torch

from stepsight.core.models.placement import Placement
from stepsight.training.experiments.finetuning.examples import prompt_ids
from stepsight.training.experiments.finetuning.generation import GeneratedAnswer, engine_name, open_engine
from stepsight.training.experiments.finetuning.models import load_model, load_text_tokenizer
from tests.messages import refused

PROMPT = "Q: {query}\nA: "


def greedy(model, end, prompt, longest):
    """The likeliest token, one after the other, without a cache or padding."""
    ids = list(prompt)
    with torch.inference_mode():
        for _ in range(longest):
            following = int(model(input_ids=torch.tensor([ids])).logits[0, -1].argmax())
            if following == end:
                return ids[len(prompt) :], True
            ids.append(following)
    return ids[len(prompt) :], False


def test_a_batch_of_prompts_gets_the_greedy_answers(start):
    tokenizer, model = load_text_tokenizer(start), load_model(start, Placement(dtype="float32"))
    prompts = [prompt_ids(tokenizer, PROMPT, query) for query in ("2 + 2?", "What is 12 + 12, tell me?", "9?")]
    assert len({len(prompt) for prompt in prompts}) == 3
    engine = open_engine("transformers", start, tokenizer, Placement(dtype="float32"))
    assert (engine.name, engine.context) == ("transformers", 160)
    found = engine.write(prompts, 12)
    for prompt, written in zip(prompts, found, strict=True):
        ids, ended = greedy(model, tokenizer.eos_token_id, prompt, 12)
        assert written == GeneratedAnswer(tokenizer.decode(ids, skip_special_tokens=True), len(ids), ended)


def test_an_answer_ends_at_its_end_and_does_not_count_it(start):
    tokenizer = load_text_tokenizer(start)
    prompt = prompt_ids(tokenizer, PROMPT, "2 + 2?")
    model = load_model(start, Placement(dtype="float32"))
    (first, *_), _ = greedy(model, tokenizer.eos_token_id, prompt, 1)
    # With the token that ends a text as likely as can be after it, the answer has one token.
    engine = open_engine("transformers", start, tokenizer, Placement(dtype="float32"))
    forward = engine._model.forward

    def ending(*args, **options):
        output = forward(*args, **options)
        if options["input_ids"][0, -1] == first:
            output.logits[:, -1, tokenizer.eos_token_id] = 1e4
        return output

    engine._model.forward = ending
    (written,) = engine.write([prompt], 12)
    assert written == GeneratedAnswer(tokenizer.decode([first]), 1, True)


def test_an_engine_that_is_not_installed_is_refused(monkeypatch):
    monkeypatch.setattr("stepsight.training.experiments.finetuning.generation.find_spec", lambda name: None)
    assert (engine_name("auto"), engine_name("transformers")) == ("transformers", "transformers")
    with refused():
        engine_name("vllm")
