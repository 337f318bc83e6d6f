"""The command `demo`, a Gradio interface that scores solutions and stores nothing.

stepsight demo --evaluator mini-bidir
"""

import signal
import sys
from argparse import Namespace
from pathlib import Path
from tempfile import TemporaryDirectory

from stepsight.app.commands.serve import ADDRESS, listen, public_names
from stepsight.app.demo.mount import PATH
from stepsight.app.options.command import PLACEMENT, command, read_placement, repeated
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.server import LOOPBACK, build_app, serve
from stepsight.app.web.logs import TEXT, set_up_logs
from stepsight.storage.database.store import open_store

_DEFAULT = "mini-bidir"


@command(
    repeated(
        "--evaluator NAME",
        f"a shipped evaluator, a folder, or a model hub's OWNER/NAME; may be repeated (default: {_DEFAULT})",
        default=[],
    ),
    *ADDRESS,
    PLACEMENT,
)
def demo_command(args: Namespace) -> None:
    """Serve a Gradio interface that scores solutions."""
    set_up_logs(TEXT, access=False)
    folder = TemporaryDirectory(prefix="stepsight-")
    with folder, open_store(str(Path(folder.name) / "empty.db")) as store, listen(args.port, args.host) as listener:
        evaluators = Evaluators(args.evaluator or [_DEFAULT], shipped=False, place=read_placement(args))
        hosts = [*LOOPBACK, *public_names(args.host, ())]
        application = build_app(store, evaluators, read_only=True, hosts=hosts)
        host, port = listener.getsockname()[:2]
        print(f"Open http://{host}:{port}{PATH}/ in a browser. Ctrl-C stops it.", file=sys.stderr)
        # Uvicorn raises a signal again once it has stopped, and SIGTERM is the intended way to stop it.
        signal.signal(signal.SIGTERM, lambda *_: None)
        serve(application, listener)
