"""The web application.

stepsight app
"""

import argparse
import socket
import sys

from app.commands.options import add_db
from core.errors import UserError


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("app", help="serve the pages on this machine")
    parser.add_argument("--port", type=int, default=7860, help="default: %(default)s, or the next free one")
    parser.add_argument("--evaluator", action="append", default=[], metavar="FOLDER", help="offer this one too")
    add_db(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Serve the pages on 127.0.0.1 until interrupted."""
    print("StepSight is starting.", file=sys.stderr)
    listener = listen(args.port)
    from app.evaluators import Evaluators
    from app.seed import seed
    from app.server import build_app, serve
    from core.loading import shipped_evaluators
    from storage.store import open_store

    with open_store(args.db) as store:
        evaluators = Evaluators(tuple(args.evaluator))
        # Only these are sure to be quick: another one may take minutes on a trace.
        seed(store, evaluators, shipped_evaluators())
        application = build_app(store, evaluators)
        port = listener.getsockname()[1]
        print(f"Store: {store.name}\nOpen http://127.0.0.1:{port} in a browser. Ctrl-C stops it.", file=sys.stderr)
        serve(application, listener)


def listen(port: int) -> socket.socket:
    """A socket on 127.0.0.1, on `port` or one of the nine after it. Raises `UserError` where none is free."""
    for candidate in range(port, port + 10) if port else [0]:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", candidate))
        except OverflowError:
            listener.close()
            raise UserError(f"--port is {port}, expected 0 to 65535.") from None
        except OSError:
            listener.close()
            continue
        listener.listen(128)
        return listener
    raise UserError(f"the ports {port} to {port + 9} are taken or not allowed.", "Choose another with --port.")
