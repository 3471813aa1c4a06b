"""The application: routes from addresses to the page and to the models, counters, and the life of the server."""

import asyncio
import contextlib
import dataclasses
import logging
import math
import pathlib
import signal
import socket
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from nmt_jax import __version__
from nmt_jax.errors import UserError, explain
from nmt_jax.interrupts import handling
from nmt_jax.serving import counters
from nmt_jax.serving.batching import Batcher, QueueFullError
from nmt_jax.serving.bodies import read_body
from nmt_jax.serving.connections import Connection
from nmt_jax.serving.endpoints import ENDPOINTS
from nmt_jax.serving.endpoints.endpoint import Endpoint
from nmt_jax.serving.guards import Guard, event
from nmt_jax.serving.models import Models
from nmt_jax.serving.openapi import describe

PAGE = pathlib.Path(__file__).parent / "page"
MEDIA = {".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
VIEWS = ("/", "/translate", "/compare", "/language", "/explain", "/runs")  # the page shows the view of its address
BATCH = 64  # lines of several requests that are translated together
END = object()  # of the parts of an answer
FAILED = "an error of the server; its log has the details"
WORK_AFTER = 0.5  # seconds, so that a first request that is sent at once does not wait for `work`
STOP_SECONDS = 30  # for the requests that are being answered when the server is told to stop


class Server:
    """Answers requests for the models and metrics of `models`.

    queue: lines that may wait; requests beyond it get status 429. token, local: as in `guards.Guard`.
    """

    def __init__(self, models: Models, *, queue: int = 2000, token: str = "", local: bool = True) -> None:
        self._models = models
        self._batcher = Batcher(self._compute, queue, BATCH)
        self._requests = counters.Requests()
        files = {f"/page/{file.name}": _file(file) for file in sorted(PAGE.iterdir()) if file.suffix in MEDIA}
        files |= dict.fromkeys(VIEWS, files["/page/index.html"])
        # Routes are tried in turn: those of the JSON interface come first.
        routes = [Route(path, self._post, methods=["POST"]) for path in ENDPOINTS]
        routes += [Route(path, _constant(response)) for path, response in files.items()]
        routes += [
            Route("/api/models", _constant(JSONResponse(models.describe()))),
            Route("/api/openapi.json", _constant(JSONResponse(describe(ENDPOINTS.values(), __version__)))),
            Route("/health", self._health),
            Route("/metrics", self._metrics),
        ]
        self._paths = {route.path for route in routes}
        starlette = Starlette(routes=routes, exception_handlers={HTTPException: _http_error, Exception: _failure})
        config = uvicorn.Config(
            Guard(starlette, token=token, local=local, counted=self._count),
            loop="asyncio",
            http=Connection,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=STOP_SECONDS,
        )
        self._uvicorn = _Uvicorn(config)
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # what clients do wrong

    def run(self, listening: socket.socket, work: Iterable[Any] = ()) -> None:
        """Answer requests at a socket until `stop` is called or SIGINT or SIGTERM arrives.

        work: other things to do, soon after the start; each next one takes its turn among the requests.
        """
        numbers = (signal.SIGINT, signal.SIGTERM)
        with handling(dict.fromkeys(numbers, lambda number, frame: self.stop())):
            asyncio.run(self._serve(listening, _Stream("warm-up", iter(work)) if work else None))
        self._batcher.close()

    async def _serve(self, listening: socket.socket, work: "_Stream | None") -> None:
        async def do_work() -> None:
            if work:
                await asyncio.sleep(WORK_AFTER)
                async for _ in self._events(work):
                    pass

        working = asyncio.create_task(do_work())
        await self._uvicorn.serve([listening])
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    def stop(self) -> None:
        """Accept no further request, answer those that have begun, and end `run`; called twice, end it at once."""
        self._uvicorn.force_exit = self._uvicorn.should_exit
        self._uvicorn.should_exit = True

    async def _post(self, request: Request) -> Response:
        endpoint = ENDPOINTS[request.url.path]
        try:
            body = read_body(endpoint, await request.body())
            call, items = endpoint.parse(self._models, body)
            if endpoint.stream and body["stream"]:
                events = self._events(_Stream(endpoint.path, endpoint.stream(self._models, call, items)))
                first = await anext(events)  # an error until here has a status of its own
                return StreamingResponse(_chain(first, events), media_type="text/event-stream")
            results = await self._batcher.submit((endpoint, call), items)
        except QueueFullError:
            seconds = str(math.ceil(1 + self._batcher.waiting / BATCH))
            return _error(429, f"the server is busy; try again in {seconds} seconds", {"Retry-After": seconds})
        except Exception as error:
            if (message := explain(error)) is None:
                raise
            return _error(400 if isinstance(error, UserError) else 500, message)
        return JSONResponse(endpoint.answer(call, results))

    async def _events(self, stream: "_Stream") -> AsyncIterator[str]:
        """The parts of an answer as server-sent events; each is computed in a turn of its own."""
        part = (await self._batcher.submit(stream, [None]))[0]
        while part is not END:
            try:
                following = (await self._batcher.submit(stream, [None]))[0]
            except Exception as error:
                if (message := "the server is busy" if isinstance(error, QueueFullError) else explain(error)) is None:
                    print_failure(stream.path, error)
                    message = FAILED
                yield event("error", {"error": message})
                return
            yield event("result" if following is END else "part", part)
            part = following

    def _compute(self, called: "tuple[Endpoint, Any] | _Stream", items: Sequence[Any]) -> Iterable[Any]:
        if isinstance(called, _Stream):
            return [next(called.parts, END)]
        endpoint, call = called
        return endpoint.compute(self._models, call, items)

    async def _health(self, request: Request) -> Response:
        if self._uvicorn.should_exit:
            return JSONResponse({"status": "stopping"}, 503)
        return JSONResponse({"status": "ok", "version": __version__})

    async def _metrics(self, request: Request) -> Response:
        """Counters in the text format of Prometheus."""
        batcher, metric = self._batcher, counters.metric
        lines = "Lines in these batches; of a stream, its parts."
        text = counters.text(
            (
                self._requests.rows(),
                metric("nmt_jax_batches_total", "counter", "Batches computed.", {"": batcher.num_batches}),
                metric("nmt_jax_lines_total", "counter", lines, {"": batcher.num_items}),
                metric("nmt_jax_waiting_lines", "gauge", "Lines in the queue.", {"": batcher.waiting}),
                counters.process(),
            )
        )
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    def _count(self, path: str, status: int, seconds: float) -> None:
        self._requests.count(path if path in self._paths else "other", status, seconds)


@dataclasses.dataclass(frozen=True, eq=False)
class _Stream:
    """A request whose answer is computed in parts; no other shares its batches."""

    path: str
    parts: Iterator[Any]


class _Uvicorn(uvicorn.Server):
    """The HTTP server, which leaves signals to `Server.run`."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to an address, port 0 for any free one. Raises UserError if that is impossible."""
    listening = None
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # With TCP named, asyncio sends each part of an answer at once (TCP_NODELAY).
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
    except OSError as error:
        if listening:
            listening.close()
        raise UserError(f"--host={host} --port={port}: {error.strerror}; use another port, such as --port=0") from None
    return listening


def _constant(response: Response) -> Callable[[Request], Any]:
    async def endpoint(request: Request) -> Response:
        return response

    return endpoint


def _file(path: pathlib.Path) -> Response:
    return Response(path.read_bytes(), media_type=MEDIA[path.suffix])


def _error(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": message}, status, headers)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == 405:
        return _error(405, f"this address takes {headers.get('Allow', 'other methods')} only", headers)
    return _error(error.status_code, "no such address; /api/openapi.json describes all", headers)


async def _failure(request: Request, error: Exception) -> Response:
    print_failure(request.url.path, error)
    return _error(500, FAILED)


def print_failure(path: str, error: Exception) -> None:
    """Write an error of the server to its log."""
    print(f"nmt-jax: {path} failed:", file=sys.stderr)
    traceback.print_exception(error)


async def _chain(first: str, others: AsyncIterator[str]) -> AsyncIterator[str]:
    yield first
    async for one in others:
        yield one
