"""Loaded by every interpreter that has this folder on its path: no other machine can be reached, and each attempt
is written down in the file that STEPSIGHT_ATTEMPTS names."""

import os
import socket
import sys
import traceback

_LOCAL = (None, "", "localhost", "::", "::1", "0.0.0.0", socket.gethostname())
_EVENTS = {
    "socket.getaddrinfo": lambda host, *_: host,
    "socket.gethostbyname": lambda host: host,
    "socket.connect": lambda _, address: address,
    "socket.sendto": lambda _, address: address,
    "socket.sendmsg": lambda _, address: address,
}


def _watch(event, arguments):
    if event not in _EVENTS:
        return
    place = _EVENTS[event](*arguments)
    host = place[0] if isinstance(place, tuple) else place
    # A path is a socket of this machine, and so is a number, which is a NETLINK address.
    host = host.decode() if isinstance(host, bytes) else host
    if not isinstance(host, str) or "/" in host or host in _LOCAL or host.startswith("127."):
        return
    with open(os.environ["STEPSIGHT_ATTEMPTS"], "a") as attempts:
        attempts.write(f"{event} {place} from {traceback.extract_stack(limit=12)[:-1]}\n")
    raise OSError("there is no network")


sys.addaudithook(_watch)
