"""The real application on a free port of the loopback, for browser tests and screenshots."""

import shutil
import threading
import time
from contextlib import contextmanager

import uvicorn

from stepsight.app.commands.serve import listen
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.scoring.gallery_seed import seed
from stepsight.app.server import KEEP_ALIVE, build_app
from stepsight.storage.database.store import open_store
from stepsight.storage.traces.imports import import_file


@contextmanager
def serving(folder, files=None, seeded=None):
    """Serve a seeded store kept in `folder`, with `files` (kind to path) imported; yields the base address. It
    starts from a copy of `seeded`, where it is given: judging the gallery takes seconds."""
    if seeded is not None:
        shutil.copy(seeded, folder / "store.db")
    with open_store(str(folder / "store.db")) as store:
        evaluators = Evaluators()
        seed(store, evaluators, evaluators.names)
        for kind, path in (files or {}).items():
            import_file(store, kind, path, kind)
        with served(store, evaluators) as address:
            yield address


@contextmanager
def served(store, evaluators, port=0, **options):
    """Serve a store on `port` or a free one; `options` are `build_app`'s. Yields the base address."""
    listener = listen(port)
    server = uvicorn.Server(
        uvicorn.Config(build_app(store, evaluators, **options), log_level="error", timeout_keep_alive=KEEP_ALIVE)
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
