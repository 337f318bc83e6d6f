"""The transforms of stress tests. A new one needs nothing but a module in this folder, with a list `TRANSFORMS`."""

import importlib
import pkgutil
from functools import cache

from stepsight.core.errors import UserError
from stepsight.training.stress.variant import Demand, Transform


@cache
def all_transforms() -> dict[str, Transform]:
    """Return all transforms by their names: first those after which a verdict must change, then the others."""
    modules = sorted(module.name for module in pkgutil.iter_modules(__path__))
    found = [
        transform for module in modules for transform in importlib.import_module(f"{__name__}.{module}").TRANSFORMS
    ]
    ordered = sorted(found, key=lambda transform: transform.demand != Demand.CHANGE)
    return {transform.name: transform for transform in ordered}


def find_transform(name: str) -> Transform:
    """Return the transform with this name. Raises `UserError` if there is none."""
    transforms = all_transforms()
    if name not in transforms:
        raise UserError(f"there is no transform {name!r:.60}.", f"The transforms are {', '.join(transforms)}.")
    return transforms[name]
