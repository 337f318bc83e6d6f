"""Files as browsers send them."""

from pathlib import Path

from stepsight.storage.database.store import Store
from stepsight.storage.jobs.uploads import Upload, add_part, begin_upload


def send(store: Store, user_id: int, content: bytes, name: str = "traces.jsonl", size: int = 1000) -> Upload:
    """An upload of some content, in parts of that size."""
    upload = begin_upload(store, user_id, name, len(content), "1")
    while not upload.is_whole:
        upload = add_part(store, upload.id, user_id, upload.received, content[upload.received :][:size])
    return upload


def send_file(store: Store, user_id: int, path: Path) -> Upload:
    return send(store, user_id, path.read_bytes(), path.name, 512 * 1024)
