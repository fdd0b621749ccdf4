"""A TCP port passes from one listening socket of a process to the next; no connection is lost.

Sockets that share a port (SO_REUSEPORT) are a group, in the order in which they began to listen. A
filter on the group decides which of them gets a new connection; those that the others have got stay
there. See socket(7) for SO_ATTACH_REUSEPORT_CBPF, Linux's bpf_classic for its instructions.
"""

from __future__ import annotations

import socket
import struct
from array import array
from typing import Final

from tilefarm.rpc.descriptors import sockets_at

_ATTACH_REUSEPORT_CBPF: Final = 51
_RETURN_CONSTANT: Final = 0x06
"""BPF_RET | BPF_K."""


def share(port: int) -> None:
    """From now on another socket of this user that asks to share the port may listen there, too.

    One that does not ask may not: a first server never does, so two never split a port's
    connections by mistake.
    """
    for listener in sockets_at(port, listening=True):
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)


def lead_to(port: int, place: int) -> bool:
    """From now on the port's new connections go to that one of its sockets; whether that is so.

    Where there is none at that place, or this system has no such filters, they go to any.

    Args:
        port: at which sockets of this process listen.
        place: 0 for the first one. Where one is closed, the last one takes its place.
    """
    instruction = array("B", struct.pack("=HBBI", _RETURN_CONSTANT, 0, 0, place))
    program = struct.pack("@HP", 1, instruction.buffer_info()[0])
    try:
        for listener in sockets_at(port, listening=True):
            listener.setsockopt(socket.SOL_SOCKET, _ATTACH_REUSEPORT_CBPF, program)
    except OSError:
        return False
    return True


def listening_sockets(port: int) -> int:
    """How many sockets of this process listen at the port."""
    return sum(1 for _ in sockets_at(port, listening=True))
