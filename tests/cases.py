"""Many cases in one test: for those whose names help nobody, and which need nothing new of their own."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytest


def each(names, cases):
    """Like `pytest.mark.parametrize` with all cases in one test, which share its fixtures.

    Every case runs; the test fails with each that failed, and says which it was.
    """
    parameters = [name.strip() for name in names.split(",")]
    rows = [dict(zip(parameters, case if len(parameters) > 1 else [case], strict=True)) for case in cases]
    assert rows, f"no case of {names}"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            failures: list[BaseException] = []
            for row in rows:
                try:
                    test(**fixtures, **row)
                except (Exception, pytest.fail.Exception) as error:
                    error.add_note(", ".join(f"{name}={value!r}" for name, value in row.items())[:1000])
                    failures.append(error)
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(rows)} cases", failures)

        signature = inspect.signature(test)
        left = [one for one in signature.parameters.values() if one.name not in parameters]
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return run

    return decorate
