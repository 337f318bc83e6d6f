"""Every check that `equations` makes on the benchmarks of the folder of real data, as a hash for each trace."""

import hashlib
import os
from pathlib import Path

from stepsight.core.equations.evaluator import checks_of
from stepsight.storage.database.store import open_store
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from tests.conftest import ROOT

BENCHMARKS = {
    "mr-math-invalid": "mr-math/mr-math_invalid_errors.json",
    "mr-math-redundant": "mr-math/mr-math_redundant_errors.json",
    "mr-gsm8k": "mr-gsm8k/MR-GSM8K_partial.json",
    "perturbation": "perturbation/perturbation.json",
    "prm800k": "prm800k/test.jsonl",
}
_PER_LINE = 16


def record(scene):
    """Yield eight digits for each trace, in the order of the file, and the number of checks and of failing ones."""
    data = Path(os.environ.get("STEPSIGHT_DATA") or ROOT / ".." / "shared" / "data").resolve()
    for kind, path in BENCHMARKS.items():
        printed = scene.run("import", kind, data / path, "--dataset", kind, "--skip-bad")
        assert "\nexit 0" in printed, printed
        hashes, checks, failing = [], 0, 0
        with open_store(scene.store) as store:
            for trace in iterate_traces(store, find_dataset(store, kind).id):
                made = checks_of(trace)
                checks += sum(map(len, made))
                failing += sum(not check.holds for part in made for check in part)
                places = [[(c.start, c.end, c.holds, str(c.method)) for c in part] for part in made]
                hashes.append(hashlib.sha256(repr(places).encode()).hexdigest()[:8])
        lines = [" ".join(hashes[start : start + _PER_LINE]) for start in range(0, len(hashes), _PER_LINE)]
        yield f"equations/{kind}.txt", "\n".join([f"{checks} checks, {failing} failing", *lines])
