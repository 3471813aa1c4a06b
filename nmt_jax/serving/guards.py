"""What surrounds the application: limits on requests, checks of their origin and token, and headers of answers."""

import asyncio
import contextlib
import hmac
import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

MOST_BYTES = 8 << 20  # of a body
BODY_SECONDS = 10.0  # in which a client has to send a body
ANSWER_SECONDS = 120.0
LOOPBACK = ("localhost", "127.0.0.1", "::1")

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class RefusedError(Exception):
    """A request that is not passed on: an HTTP status and the reason in one line."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class Guard:
    """An ASGI application around another one.

    token: which requests for /api/ and /metrics must carry, if any. local: whether the server is bound to the loopback
    interface; then a request must name it by a local name, so that no foreign name can be made to point to it.
    counted: called with the path and the status of each answer, and the seconds it took.
    """

    def __init__(
        self,
        application: Application,
        *,
        token: str = "",
        local: bool = True,
        counted: Callable[[str, int, float], None] = lambda path, status, seconds: None,
    ) -> None:
        self._application, self._token, self._local, self._counted = application, token, local, counted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        status, streamed, began = 0, False, asyncio.get_running_loop().time()

        async def send_with_headers(message: MutableMapping[str, Any]) -> None:
            nonlocal status, streamed
            if message["type"] == "http.response.start":
                status = message["status"]
                streamed = dict(message["headers"]).get(b"content-type", b"").startswith(b"text/event-stream")
                message = {**message, "headers": [*message["headers"], *_encoded(HEADERS.items())]}
            await send(message)

        try:
            self._check(scope)
            body = await _read_body(scope, receive)
            async with asyncio.timeout(ANSWER_SECONDS):
                await _while_connected(self._application(scope, _replayed(body), send_with_headers), receive)
        except RefusedError as refused:
            await _discard(receive)
            await _refuse(send_with_headers, refused)
        except TimeoutError:
            reason = f"no answer within {ANSWER_SECONDS:g} seconds; send fewer or shorter lines"
            if not status:
                await _refuse(send_with_headers, RefusedError(504, reason))
            elif streamed:
                await send({"type": "http.response.body", "body": event("error", {"error": reason}).encode()})
        finally:
            self._counted(scope["path"], status, asyncio.get_running_loop().time() - began)

    def _check(self, scope: Scope) -> None:
        """Raise RefusedError for a request from another site, without the token, or with a body that is not JSON."""
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        host, origin = headers.get("host", ""), headers.get("origin")
        if self._local and _name(f"http://{host}") not in LOOPBACK:
            raise RefusedError(403, "this server answers requests for localhost only; start it with --host=0.0.0.0")
        if origin is not None and origin.partition("://")[2].lower() != host.lower():
            raise RefusedError(403, "the request comes from a page of another site")
        guarded = scope["path"].startswith("/api/") or scope["path"] == "/metrics"
        if (
            self._token
            and guarded
            and not hmac.compare_digest(headers.get("authorization", "").encode(), f"Bearer {self._token}".encode())
        ):
            raise RefusedError(401, "the token is missing or wrong; send it as `Authorization: Bearer TOKEN`")
        if (
            scope["method"] == "POST"
            and headers.get("content-type", "").partition(";")[0].strip() != "application/json"
        ):
            raise RefusedError(415, "the body must be JSON; send `Content-Type: application/json`")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 20 or int(length) > MOST_BYTES:
            raise RefusedError(413, f"the body is too large; at most {MOST_BYTES:,} bytes are possible")


async def _read_body(scope: Scope, receive: Receive) -> bytes:
    """Return the body. Raises RefusedError if it is too large or arrives too slowly."""
    if scope["method"] != "POST":
        return b""
    parts, size = [], 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise RefusedError(400, "the client closed the connection")
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > MOST_BYTES:
                    raise RefusedError(413, f"the body is too large; at most {MOST_BYTES:,} bytes are possible")
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError:
        raise RefusedError(408, f"the body did not arrive within {BODY_SECONDS:g} seconds") from None


async def _discard(receive: Receive) -> None:
    """Read what a client still sends, within limits: many read the answer only when they have sent everything."""
    size = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(BODY_SECONDS):
            while size < 32 * MOST_BYTES:
                message = await receive()
                size += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return


async def _while_connected(answering: Awaitable[None], receive: Receive) -> None:
    """Wait for an answer, and cancel it when the client goes away."""

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    tasks = asyncio.ensure_future(answering), asyncio.ensure_future(gone())
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if tasks[0].done():
            tasks[0].result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _replayed(body: bytes) -> Receive:
    """A `receive` that returns a body that was already read, and nothing afterwards."""
    messages: list[MutableMapping[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> MutableMapping[str, Any]:
        return messages.pop() if messages else await asyncio.Future()

    return replay


async def _refuse(send: Send, refused: RefusedError) -> None:
    """Send a refusal as JSON and close the connection, since the body may not have been read."""
    body = json.dumps({"error": refused.reason}).encode()
    headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("connection", "close")]
    if refused.status == 401:
        headers.append(("www-authenticate", "Bearer"))
    await send({"type": "http.response.start", "status": refused.status, "headers": _encoded(headers)})
    await send({"type": "http.response.body", "body": body})


def event(name: str, data: Any) -> str:
    """Return a server-sent event."""
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False, allow_nan=False)}\n\n"


def _encoded(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers]


def _name(url: str) -> str:
    """The name of the host of a URL, "" if there is none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
