"""Connections of clients: their number, and the time they have to send the head of a request and to read an answer."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 1000
HEAD_SECONDS = 10.0  # in which the head of a request arrives
READ_SECONDS = 30.0  # in which a client reads some of an answer


class Connection(H11Protocol):
    """A connection that is closed if the client is too slow, or if too many are open."""

    _head: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
        else:
            self._head = self.loop.call_later(HEAD_SECONDS, transport.abort)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        answering = self.cycle is not None and not self.cycle.response_complete
        if answering:
            self._head = self._stopped(self._head)
        elif self._head is None and not self.transport.is_closing():
            self._head = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.loop.call_later(READ_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread = self._stopped(self._unread)

    def connection_lost(self, exc: Exception | None) -> None:
        self._head, self._unread = self._stopped(self._head), self._stopped(self._unread)
        super().connection_lost(exc)

    def _stopped(self, timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
        """Stop a timer, if there is one, and return None."""
        if timer is not None:
            timer.cancel()
        return None
