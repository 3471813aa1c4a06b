"""A queue in front of one thread that computes: requests of many clients with the same call share a batch."""

import asyncio
import collections
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

Compute = Callable[[Any, Sequence[Any]], Iterable[Any]]


class QueueFullError(Exception):
    """Raised when more items wait than the queue holds."""


class _Waiting(NamedTuple):
    """The items of one request, the call they are for, and the future of their results."""

    call: Hashable
    items: Sequence[Any]
    future: asyncio.Future[Sequence[Any]]
    loop: asyncio.AbstractEventLoop

    def set(self, results: Sequence[Any] | None, error: BaseException | None = None) -> None:
        """Set the results or the error in the thread of the event loop, unless the client has gone."""

        def finish() -> None:
            if self.future.done():
                return
            if error is not None:
                self.future.set_exception(error)
            else:
                assert results is not None
                self.future.set_result(results)

        self.loop.call_soon_threadsafe(finish)


class Batcher:
    """Computes `compute(call, items)`, one result per item, for requests in the order of their arrival.

    The oldest request is computed together with those behind it that have an equal call, `batch_size` items at most. A
    request that fails in a batch is computed alone, so that it does not affect the others. A batch is given up after
    the next result that `compute` yields if all its clients have gone. capacity: of the queue, in items.
    """

    def __init__(self, compute: Compute, capacity: int, batch_size: int) -> None:
        self.capacity, self.batch_size = capacity, batch_size
        self.num_batches = self.num_items = 0
        self._compute = compute
        self._queue: collections.deque[_Waiting] = collections.deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="batches", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Number of items in the queue."""
        return sum(len(request.items) for request in tuple(self._queue))

    async def submit(self, call: Hashable, items: Sequence[Any]) -> Sequence[Any]:
        """Return the result of each item. Raises QueueFullError at once if there is no room, and what `compute` raises.

        A request that finds the queue empty is accepted whatever its size.
        """
        loop = asyncio.get_running_loop()
        request = _Waiting(call, items, loop.create_future(), loop)
        with self._changed:
            waiting = self.waiting
            if self._closed or (waiting and waiting + len(items) > self.capacity):
                raise QueueFullError
            self._queue.append(request)
            self._changed.notify()
        return await request.future

    def close(self) -> None:
        """Accept no further request, compute those that wait, and end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _work(self) -> None:
        while batch := self._next():
            self._run(batch)

    def _next(self) -> list[_Waiting]:
        """Wait for requests and take those of the next batch; [] if the batcher is closed and nothing waits."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closed)
            batch: list[_Waiting] = []
            size = 0
            for request in tuple(self._queue):
                if request.future.cancelled():
                    self._queue.remove(request)
                elif not batch or (request.call == batch[0].call and size + len(request.items) <= self.batch_size):
                    self._queue.remove(request)
                    batch.append(request)
                    size += len(request.items)
            if not batch and (self._queue or not self._closed):
                return self._next()
            return batch

    def _run(self, batch: Sequence[_Waiting]) -> None:
        items = [item for request in batch for item in request.items]
        results = []
        try:
            for result in self._compute(batch[0].call, items):
                results.append(result)
                if all(request.future.cancelled() for request in batch):
                    return
        except Exception as error:
            if len(batch) == 1:
                batch[0].set(None, error)
            else:
                for request in batch:
                    self._run([request])
            return
        self.num_batches, self.num_items = self.num_batches + 1, self.num_items + len(items)
        first = 0
        for request in batch:
            request.set(results[first : first + len(request.items)])
            first += len(request.items)
