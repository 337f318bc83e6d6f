"""Many viewers at once."""

import json
from concurrent.futures import ThreadPoolExecutor
from urllib.request import urlopen

import pytest

from stepsight.storage.database.store import open_store
from tests.serving import served
from tests.storage.samples import add


@pytest.mark.slow
def test_viewers_at_once_each_get_their_trace(evaluators, tmp_path):
    with open_store(str(tmp_path / "store.db")) as store:
        add(store)
        with served(store, evaluators) as address:

            def fetch(path: str) -> str:
                with urlopen(f"{address}{path}", timeout=60) as answer:
                    return answer.read().decode()

            rows = json.loads(fetch("/api/v1/datasets/sums/traces?limit=500"))["traces"]
            traces = [row["trace"] for row in rows] * 12
            assert len(traces) == 48
            with ThreadPoolExecutor(12) as pool:
                pages = list(pool.map(lambda trace: fetch(f"/browse?trace={trace}"), traces))
    assert [trace for trace, page in zip(traces, pages, strict=True) if f'data-trace="{trace}"' not in page] == []
