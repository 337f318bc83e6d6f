"""StepSight: a step-level evaluator of worked solutions, and a workbench around it.

    from stepsight import Scorer, Trace, load_evaluator

    evaluator = load_evaluator("mini-bidir")
    trace = Trace.of("What is 2 + 3?", ["2 + 3 = 6.", "So 6."])
    judgment = next(Scorer(evaluator).score([trace], "hindsight"))

A `Trace` is a problem with its steps. `load_evaluator` reads a checkpoint in any recognised layout. A `Scorer`
gives each step its probabilities of neg, neu and pos, online, offline or in hindsight. A `Client` does the same
through a server. A `Hindsight` is the triangular matrix that scores every step after each later step. `demo` builds
a Gradio interface.
"""

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepsight.app.demo.interface import demo
    from stepsight.core.evaluators.loading import load_evaluator
    from stepsight.core.scores import Hindsight
    from stepsight.core.scoring.client import Client
    from stepsight.core.scoring.scorer import Scorer
    from stepsight.core.trace import Trace
    from stepsight.storage.database.store import Store, open_store
    from stepsight.storage.exports.frames import frame
    from stepsight.storage.exports.left_out_frames import left_out_frame
    from stepsight.training.report.frames import frame_of

__all__ = [
    "Client", "Hindsight", "Scorer", "Store", "Trace", "demo", "frame", "frame_of", "left_out_frame",
    "load_evaluator", "open_store",
]  # fmt: skip

# Nothing is sent to anybody: libraries that report to their makers read this when they are imported, which every
# command, page and process of ours does after it has passed here.
os.environ |= {
    "DO_NOT_TRACK": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_UPDATE_CHECK": "1",
    "GRADIO_ANALYTICS_ENABLED": "False",
    "VLLM_NO_USAGE_STATS": "1",
    # Files of the hub come by HTTPS, whose transfer can be bounded, watched and ended.
    "HF_HUB_DISABLE_XET": "1",
}
if "huggingface_hub.constants" in sys.modules:
    sys.modules["huggingface_hub.constants"].HF_HUB_DISABLE_TELEMETRY = True  # type: ignore[attr-defined]

# Loaded when asked for: an evaluator brings PyTorch, which half of the commands do without.
_HOMES = {
    "Client": "core.scoring.client",
    "Hindsight": "core.scores",
    "Scorer": "core.scoring.scorer",
    "Store": "storage.database.store",
    "Trace": "core.trace",
    "demo": "app.demo.interface",
    "frame": "storage.exports.frames",
    "frame_of": "training.report.frames",
    "left_out_frame": "storage.exports.left_out_frames",
    "load_evaluator": "core.evaluators.loading",
    "open_store": "storage.database.store",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version(__name__)
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # What these names make is drawn in notebooks.
    import_module(f"{__name__}.core.notebook")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
