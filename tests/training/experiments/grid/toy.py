"""A grid of two runs that takes seconds, and results made by hand."""

import yaml

from stepsight.training.experiments.grid.design import RunSettings
from stepsight.training.experiments.grid.results import GridResults, RunResult

KEY = ("synthetic", "offline")

TOY = {
    "name": "toy",
    "learn_tokenizer": True,
    "base": {
        "backbone": {"hidden": 16, "layers": 1, "heads": 2, "mlp": 32, "context": 1024},
        "vocabulary": 300,
        "batch_size": 8,
        "warmup_steps": 2,
        "save_steps": 2,
        "saved_dtype": "float32",
    },
    "sizes": {"tiny": {}},
    "data": {"24": {"data": {"sources": [{"kind": "synthetic", "size": 48, "seed": 3, "sample": 24}]}}},
    "seeds": [13],
    "tests": [{"name": "synthetic", "source": {"kind": "synthetic", "size": 12, "seed": 4}, "note": "Complete."}],
}


def write_toy(folder, **changes):
    """The design as a file in `folder`."""
    path = folder / "toy.yaml"
    path.write_text(yaml.safe_dump(TOY | changes, sort_keys=False), encoding="utf-8")
    return path


def figures(macro_auc, late=0.5, **more):
    """Figures of which only some matter: accuracy is the macro-AUC minus 0.1, and macro-F1 minus 0.2."""
    known = macro_auc is not None
    accuracy, macro_f1 = (macro_auc - 0.1, macro_auc - 0.2) if known else (None, None)
    whole = {"accuracy": accuracy, "macro_f1": macro_f1, "macro_auc": macro_auc, "late_auc": late}
    return {"traces": 10, "steps": 30} | whole | more


def one_run(settings, of_run):
    return RunResult(RunSettings(*settings), {"seconds": 1.0}, {KEY[0]: {KEY[1]: of_run}})


def results(numbers, name="by-hand", late=0.5, **more):
    """Results of pairs: `numbers` maps (size, data, seed) to macro-AUC of the bidirectional and the causal run."""
    runs = tuple(
        one_run((size, data, mask, seed), figures(number, late))
        for (size, data, seed), both in numbers.items()
        for mask, number in zip(("bidirectional", "causal"), both, strict=True)
    )
    return GridResults(**{"name": name, "planned": len(runs), "runs": runs} | more)
