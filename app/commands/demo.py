"""The command `demo`, a Gradio interface that scores solutions and stores nothing.

stepsight demo --evaluator mini-bidir
"""

import signal
import sys
from argparse import Namespace

import gradio as gr
import uvicorn
from fastapi import FastAPI

from stepsight.app.commands.serve import ADDRESS, listen
from stepsight.app.demo.interface import LAUNCHED, demo
from stepsight.app.options.command import PLACEMENT, command, read_placement, repeated
from stepsight.app.scoring.evaluators import Evaluators

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
