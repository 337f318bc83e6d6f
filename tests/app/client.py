"""The whole application without a browser, asked through Starlette's client."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from starlette.testclient import TestClient

from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.server import build_app
from stepsight.storage.database.store import Store

PAGE = {"accept": "text/html"}


@contextmanager
def asking(store: Store, evaluators: Evaluators, **options: Any) -> Iterator[TestClient]:
    """A client of the application, which runs while the block does."""
    with TestClient(build_app(store, evaluators, **options), base_url="http://127.0.0.1") as client:
        yield client
