"""The version of the checks, which distinguishes stored judgments."""

import hashlib
import json
from dataclasses import astuple

from stepsight.core.equations.evaluator import VERSION, checks_of
from stepsight.training.evaluate.gallery import read_gallery
from stepsight.training.synth.corpus import generate


def test_other_checks_have_another_version():
    """If this fails, the checks have changed: increment `VERSION` and put in the new digest."""
    traces = [*read_gallery(), *generate(0, 200)]
    # Without `sides`, which only serve the wording.
    found = json.dumps([[[astuple(check)[:-1] for check in part] for part in checks_of(trace)] for trace in traces])
    assert (VERSION, hashlib.sha256(found.encode()).hexdigest()[:16]) == (4, "e39c1f4b7e73c600")
