"""Files as browsers send them."""

from pathlib import Path

from stepsight.storage.database.store import Store
from stepsight.storage.jobs.uploads import Receiving, Upload


def send(store: Store, user_id: int, content: bytes, name: str = "traces.jsonl", size: int = 1000) -> Upload:
    """An upload of some content, which comes in pieces of that size."""
    with Receiving(store, user_id, name, len(content)) as receiving:
        for start in range(0, len(content), size):
            receiving.add(content[start : start + size])
        return receiving.finish()


def send_file(store: Store, user_id: int, path: Path) -> Upload:
    return send(store, user_id, path.read_bytes(), path.name, 64 * 1024)
