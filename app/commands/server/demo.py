"""Serve the demo, a Gradio interface that scores solutions and stores nothing.

stepsight demo --evaluator mini-bidir
"""

import argparse
import signal
import sys

import gradio as gr
import uvicorn
from fastapi import FastAPI

from stepsight.app.commands.server.app import listen
from stepsight.app.demo.interface import LAUNCHED, demo
from stepsight.app.options.shared import add_placement, read_placement
from stepsight.app.scoring.evaluators import Evaluators

_DEFAULT = "mini-bidir"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--evaluator",
        action="append",
        default=[],
        metavar="NAME",
        help=f"a shipped evaluator, a folder, or a model hub's OWNER/NAME; may be repeated (default: {_DEFAULT})",
    )
    parser.add_argument("--port", type=int, default=7860, help="default: %(default)s, or the next free one")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    add_placement(parser)


def run(args: argparse.Namespace) -> None:
    """Serve the demo until SIGINT or SIGTERM."""
    with listen(args.port, args.host) as listener:
        host, port = listener.getsockname()[:2]
        interface = demo(Evaluators(args.evaluator or [_DEFAULT], shipped=False, place=read_placement(args)))
        application = gr.mount_gradio_app(FastAPI(), interface, path="/", **LAUNCHED)
        print(f"Open http://{host}:{port} in a browser. Ctrl-C stops it.", file=sys.stderr)
        # Uvicorn raises a signal again once it has stopped, and SIGTERM is the intended way to stop it.
        signal.signal(signal.SIGTERM, lambda *_: None)
        # Open pages have a request each for as long as they are open.
        server = uvicorn.Server(uvicorn.Config(application, log_level="error", timeout_graceful_shutdown=1))
        server.run(sockets=[listener])
