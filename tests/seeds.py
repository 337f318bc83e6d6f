"""Chance in searches for faults: the same in each run, or that of the variable SEED, as `make nightly` sets it."""

import os
import random

_SEED = os.environ.get("SEED", "")


def chance(name):
    """Random numbers of their own for an input of a search."""
    return random.Random(f"{_SEED}{name}")
