"""Models, subsets and studies that take a second."""

import json

from stepsight.training.experiments.finetuning.recipe import Recipe
from stepsight.training.train.config import Backbone

BACKBONE = Backbone(hidden=32, layers=2, heads=2, mlp=48, context=160)
ROWS = [(f"What is {n} + {n}?", f"{n} + {n} = {2 * n}.\nThe answer is: {2 * n}") for n in range(24)]
# 24 rows in batches of 8: 3 steps an epoch, 6 in all, checkpoints at 2, 4 and 6.
RECIPE = Recipe(
    epochs=2, batch_size=8, learning_rate=1e-2, warmup_steps=1, max_length=128, save_steps=2, saved_dtype="float32"
)
STUDY = {
    "name": "small",
    "pool": ["pool.jsonl"],
    "evaluators": ["mini-bidir"],
    "start": {"backbone": {"hidden": 32, "layers": 2, "heads": 2, "mlp": 48, "context": 1024}, "vocabulary": 400},
    "match": 6,
    "seeds": [1],
    "subsets": ["red", "random"],
    "settings": {"epochs": 1, "batch_size": 4, "learning_rate": 1e-2, "warmup_steps": 1, "saved_dtype": "float32"},
    "problems": "problems.jsonl",
    "tokens": 4,
    "batch": 4,
}
POOL = "".join(
    json.dumps({"instruction": f"What is {n} + {n}?", "output": f"{n} + {n} = {2 * n}\nA: {2 * n}"}) + "\n"
    for n in range(20)
)
PROBLEM = '{"problem": "2 + 2?", "answer": "4"}\n'


def write_subset(path, rows=ROWS):
    path.write_text("".join(json.dumps({"query": query, "response": response}) + "\n" for query, response in rows))
    return path
