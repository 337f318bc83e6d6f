"""The commands `app`, `work` and `demo`: the server, a worker for its jobs, and a Gradio interface that scores
solutions and stores nothing.

stepsight app --evaluator FOLDER --device cuda --dtype bfloat16
stepsight work --once
stepsight demo --evaluator mini-bidir
"""

import argparse
import logging
import signal
import socket
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import partial
from ipaddress import ip_address, ip_network
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

from stepsight.app.demo.mount import PATH
from stepsight.app.jobs.supervisor import Supervisor
from stepsight.app.jobs.worker import Worker
from stepsight.app.options.command import (
    DB,
    PLACEMENT,
    Option,
    command,
    flag,
    is_placed,
    option,
    placement_arguments,
    positive,
    read_placement,
    repeated,
)
from stepsight.app.scoring.batcher import REQUEST_SECONDS, REQUEST_TOKENS
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.server import LOOPBACK, build_app, serve
from stepsight.app.web.logs import FORMATS, TEXT, set_up_logs
from stepsight.core.errors import UserError
from stepsight.storage.database.location import locate
from stepsight.storage.database.store import open_store
from stepsight.storage.jobs.jobs import on_queued
from stepsight.storage.people.users import has_users


def network(text: str) -> str:
    """Parse an IP address or a network, for use as the `type` of an option."""
    try:
        return str(ip_network(text)) if "/" in text else str(ip_address(text))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r:.60} found, expected an address such as 127.0.0.1 or a network such as 10.0.0.0/8"
        ) from None


ADDRESS: tuple[Option, ...] = (
    option("--port", "default: %(default)s, or the next free one", type=int, default=7860),
    option("--host", "the address to listen on (default: %(default)s)", default="127.0.0.1"),
)


@command(
    *ADDRESS,
    flag("--public-read-only", "let everybody view and score; everything else needs a login"),
    repeated("--name NAME", "a name under which browsers on other machines reach the server", default=[]),
    repeated(
        "--proxy ADDRESS",
        "a proxy in front of the server, or its network: trust its statements on the origin of requests",
        default=[],
        type=network,
    ),
    option(
        "--request-tokens N",
        "the largest number of tokens that scoring one solution may compute (default: %(default)s)",
        type=positive(int),
        default=REQUEST_TOKENS,
    ),
    option(
        "--request-seconds S",
        "the longest time that a program's request may take (default: %(default)s)",
        type=positive(float),
        default=REQUEST_SECONDS,
    ),
    repeated(
        "--evaluator FOLDER",
        "also offer this one: a folder, a model hub's OWNER/NAME, or behind a server vllm:http://HOST:8000/v1#MODEL",
        default=[],
    ),
    flag("--access-log", "log every request: no query, no text, no token"),
    option(
        "--log-format", "lines for people, or JSON objects (default: %(default)s)", choices=FORMATS, default=TEXT
    ),
    PLACEMENT,
    DB,
)
def app_command(args: Namespace) -> None:
    """Serve the pages on this machine."""
    proxied = bool(args.name or args.proxy)
    check_host(args.host, args.db, args.public_read_only, proxied=proxied)
    if is_placed(args) and not args.evaluator:
        raise UserError(
            "--device, --device-map and --dtype are for evaluators given with --evaluator.",
            "The shipped ones stay on the processor in float32; name one with --evaluator to move it.",
        )
    place = read_placement(args) if is_placed(args) else None
    say = partial(print, file=sys.stderr) if args.log_format == TEXT else logging.getLogger("stepsight").info
    set_up_logs(args.log_format, access=args.access_log)
    say("StepSight is starting.")
    listener = listen(args.port, args.host)
    # These imports take a second; errors in the command line are reported first.
    from stepsight.app.scoring.gallery_seed import open_evaluators, preparing
    from stepsight.app.server import LOOPBACK, build_app, serve

    address = locate(args.db).render_as_string(hide_password=False)
    with open_store(args.db) as store, ExitStack() as stack:
        evaluators = open_evaluators(store, args.evaluator, place, args.request_tokens)
        users, public = has_users(store), args.public_read_only
        supervised = users or not public
        worker = ("--log-format", args.log_format, *placement_arguments(args))
        supervisor = Supervisor(address, worker, evaluators.give_room)
        application = build_app(
            store,
            evaluators,
            read_only=public and not users,
            public=public,
            # Otherwise, everybody behind a proxy would become the local user once the last user is deactivated.
            loopback=is_loopback(args.host) and not proxied,
            hosts=[*LOOPBACK, *public_names(args.host, args.name)] if public or users else LOOPBACK,
            seconds=args.request_seconds,
            has_worker=(lambda: supervisor.is_whole) if supervised else None,
        )
        signal.signal(signal.SIGTERM, _end)
        if supervised:
            stack.enter_context(supervisor)
            stack.enter_context(on_queued(store, supervisor.wake))
        stack.enter_context(preparing(store, evaluators))
        say(_greeting(store.name, listener, public=public, users=users))
        try:
            serve(application, listener, args.proxy, supervisor.stop)
        except KeyboardInterrupt:
            if args.log_format == TEXT:
                raise
            say("StepSight is stopped.")
            raise SystemExit(130) from None


def _end(*_: object) -> NoReturn:
    """Exit with code 0 on SIGTERM, which is the intended way to stop the server."""
    raise SystemExit(0)


@command(flag("--once", "exit when no job is left"), PLACEMENT, DB)
def work_command(args: Namespace) -> None:
    """Run the jobs that wait in the store."""
    place = read_placement(args)
    with open_store(args.db) as store:
        worker = Worker(store, place=place)
        if not args.once:
            print(f"Waiting for jobs of {store.name}. Ctrl-C stops it.", file=sys.stderr)
            worker.run()
            return
        done = 0
        while worker.work_one():
            done += 1
    print(f"{done:,} {'job' if done == 1 else 'jobs'} done.", file=sys.stderr)


def check_host(host: str, db: str | None, public_read_only: bool, *, proxied: bool = False) -> None:
    """Raise `UserError` if other machines could reach the server, by a proxy if it is `proxied`, and change the
    store without a login."""
    here = is_loopback(host)
    if (here and not proxied) or public_read_only or _has_users(db):
        return
    given = "--name or --proxy is given" if here else f"--host is {host!r}"
    raise UserError(
        f"{given}: other machines could change what is stored, and nobody has to log in.",
        "Leave it out to serve only this machine, add --public-read-only, or create users: stepsight user add",
    )


def _has_users(db: str | None) -> bool:
    """True if the store has a user who can log in. A store that does not exist is not created."""
    url = locate(db)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").exists():
        return False
    with open_store(db) as store:
        return has_users(store)


def is_loopback(host: str) -> bool:
    """True if a server that listens on `host` can be reached only from this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def public_names(host: str, names: Sequence[str]) -> list[str]:
    """Return the host names under which browsers on other machines may reach the server.

    The result consists of `host`, the given `names` and, if the server listens on every address, the names and
    addresses of this machine.
    """
    own: set[str] = set()
    with suppress(ValueError, OSError):
        if ip_address(host).is_unspecified:
            own = {socket.gethostname(), socket.getfqdn()}
            own |= {str(entry[4][0]) for entry in socket.getaddrinfo(socket.gethostname(), None)}
    return sorted(_bracket_address(name) for name in {host, *own, *names})


def _bracket_address(name: str) -> str:
    return f"[{name}]" if ":" in name else name


def _greeting(store: str, listener: socket.socket, *, public: bool, users: bool) -> str:
    host, port = listener.getsockname()[:2]
    login = "Changes need a login." if public else "Everybody has to log in."
    note = f"{login}\n" if users else "Other machines may look, and change nothing.\n" if public else ""
    return f"Store: {store}\n{note}Open http://{_bracket_address(host)}:{port} in a browser. Ctrl-C stops it."


def listen(port: int, host: str = "127.0.0.1") -> socket.socket:
    """Return a socket that listens on `host`, at `port` or at one of the nine ports after it. Raises `UserError` if
    none of these ports is free."""
    try:
        family = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][0]
    except (OSError, UnicodeError):
        raise UserError(f"--host is {host!r}, not an address of this machine.", "Give an address.") from None
    for candidate in range(port, port + 10) if port else [0]:
        listener = socket.socket(family)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, candidate))
        except OverflowError:
            listener.close()
            raise UserError(f"--port is {port}, expected 0 to 65535.") from None
        except OSError:
            listener.close()
            continue
        listener.listen(128)
        return listener
    raise UserError(f"the ports {port} to {port + 9} are taken or not allowed.", "Choose another with --port.")


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
