"""The application: routes from addresses to the page and to the models, counters, and the life of the server."""

import asyncio
import contextlib
import math
import pathlib
import signal
import socket
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from nmt_jax import __version__
from nmt_jax.errors import UserError, explain
from nmt_jax.interrupts import handling
from nmt_jax.serving.batching import Batcher, QueueFullError
from nmt_jax.serving.bodies import read_body
from nmt_jax.serving.endpoints import ENDPOINTS
from nmt_jax.serving.endpoints.endpoint import Endpoint
from nmt_jax.serving.guards import Guard
from nmt_jax.serving.models import Models
from nmt_jax.serving.openapi import describe

PAGE = pathlib.Path(__file__).parent / "page"
MEDIA = {".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
VIEWS = ("/", "/translate", "/compare", "/language", "/explain", "/runs")  # the page shows the view of its address
BATCH = 64  # lines of several requests that are translated together
STOP_SECONDS = 30  # for the requests that are being answered when the server is told to stop


class Server:
    """Answers requests for the models and metrics of `models`.

    queue: lines that may wait; requests beyond it get status 429. token, local: as in `guards.Guard`.
    """

    def __init__(self, models: Models, *, queue: int = 2000, token: str = "", local: bool = True) -> None:
        self._models = models
        self._batcher = Batcher(self._compute, queue, BATCH)
        self._answers: Counter[tuple[str, int]] = Counter()
        self._seconds = 0.0
        files = {f"/page/{file.name}": _file(file) for file in sorted(PAGE.iterdir()) if file.suffix in MEDIA}
        files |= dict.fromkeys(VIEWS, files["/page/index.html"])
        routes = [Route(path, _constant(response)) for path, response in files.items()]
        routes += [Route(path, self._post, methods=["POST"]) for path in ENDPOINTS]
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
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=STOP_SECONDS,
        )
        self._uvicorn = _Uvicorn(config)

    def run(self, listening: socket.socket) -> None:
        """Answer requests at a socket until `stop` is called or SIGINT or SIGTERM arrives."""
        numbers = (signal.SIGINT, signal.SIGTERM)
        with handling(dict.fromkeys(numbers, lambda number, frame: self.stop())):
            asyncio.run(self._uvicorn.serve([listening]))
        self._batcher.close()

    def stop(self) -> None:
        """Accept no further request, answer those that have begun, and end `run`; called twice, end it at once."""
        self._uvicorn.force_exit = self._uvicorn.should_exit
        self._uvicorn.should_exit = True

    async def _post(self, request: Request) -> Response:
        endpoint = ENDPOINTS[request.url.path]
        try:
            call, items = endpoint.parse(self._models, read_body(endpoint, await request.body()))
            results = await self._batcher.submit((endpoint, call), items)
        except QueueFullError:
            seconds = str(math.ceil(1 + self._batcher.waiting / BATCH))
            return _error(429, f"the server is busy; try again in {seconds} seconds", {"Retry-After": seconds})
        except Exception as error:
            if (message := explain(error)) is None:
                raise
            return _error(400 if isinstance(error, UserError) else 500, message)
        return JSONResponse(endpoint.answer(call, results))

    def _compute(self, called: tuple[Endpoint, Any], items: Sequence[Any]) -> list[Any]:
        endpoint, call = called
        return endpoint.compute(self._models, call, items)

    async def _health(self, request: Request) -> Response:
        if self._uvicorn.should_exit:
            return JSONResponse({"status": "stopping"}, 503)
        return JSONResponse({"status": "ok", "version": __version__})

    async def _metrics(self, request: Request) -> Response:
        """Counters in the text format of Prometheus."""
        rows = [
            "# TYPE nmt_jax_requests_total counter",
            *(
                f'nmt_jax_requests_total{{path="{path}",status="{status}"}} {count}'
                for (path, status), count in sorted(self._answers.items())
            ),
            "# TYPE nmt_jax_request_seconds_total counter",
            f"nmt_jax_request_seconds_total {self._seconds:.3f}",
            "# TYPE nmt_jax_batches_total counter",
            f"nmt_jax_batches_total {self._batcher.num_batches}",
            "# TYPE nmt_jax_lines_total counter",
            f"nmt_jax_lines_total {self._batcher.num_items}",
            "# TYPE nmt_jax_waiting_lines gauge",
            f"nmt_jax_waiting_lines {self._batcher.waiting}",
        ]
        return Response("\n".join(rows) + "\n", media_type="text/plain; version=0.0.4")

    def _count(self, path: str, status: int, seconds: float) -> None:
        self._answers[path if path in self._paths else "other", status] += 1
        self._seconds += seconds


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
    print(f"nmt-jax: {request.method} {request.url.path} failed:", file=sys.stderr)
    traceback.print_exception(error)
    return _error(500, "an error of the server; its log has the details")
