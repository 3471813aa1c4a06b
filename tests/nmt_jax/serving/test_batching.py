"""Requests of many clients share batches and get their own results."""

import asyncio
import threading

import pytest

from nmt_jax.serving.batching import Batcher, QueueFullError


class Slow:
    """Keeps the batches; the first batch sets `started` and waits until `go` is set."""

    def __init__(self):
        self.started, self.go, self.batches = threading.Event(), threading.Event(), []

    def __call__(self, call, items):
        self.started.set()
        self.go.wait(10)
        self.batches.append((call, list(items)))
        if "wrong" in items:
            raise ValueError("wrong")
        return [(call, item) for item in items]


@pytest.fixture
def slow():
    return Slow()


async def until(event):
    """Wait for an event of another thread."""
    assert await asyncio.to_thread(event.wait, 10)


def run(slow, capacity, requests, batch_size=4):
    """Submit requests (call, items) in this order while the first is computed; returns results or errors in order."""
    batcher = Batcher(slow, capacity, batch_size)

    async def submit_all():
        tasks = []
        for call, items in requests:
            tasks.append(asyncio.create_task(batcher.submit(call, items)))
            await asyncio.sleep(0)  # the task begins and puts its request into the queue
            await until(slow.started)
        slow.go.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    try:
        return asyncio.run(submit_all())
    finally:
        batcher.close()


def test_requests_with_the_same_call_share_a_batch_in_the_order_of_arrival(slow):
    requests = [("a", [1]), ("a", [2, 3]), ("b", [4]), ("a", [5]), ("a", [6, 7]), ("b", [8])]
    results = run(slow, 100, requests)
    assert results == [[(call, item) for item in items] for call, items in requests]
    # The first was taken alone; [6, 7] does not fit into the batch of [2, 3] and [5].
    assert slow.batches == [("a", [1]), ("a", [2, 3, 5]), ("b", [4, 8]), ("a", [6, 7])]


def test_a_request_that_fails_does_not_affect_the_others_of_its_batch(slow):
    results = run(slow, 100, [("a", [0]), ("a", [1]), ("a", ["wrong"]), ("a", [2])])
    assert [results[0], results[1], results[3]] == [[("a", 0)], [("a", 1)], [("a", 2)]]
    assert isinstance(results[2], ValueError)


def test_a_request_that_does_not_fit_into_the_queue_is_refused(slow):
    results = run(slow, 3, [("a", [0]), ("a", [1, 2]), ("a", [3, 4]), ("a", [5])])
    assert isinstance(results[2], QueueFullError)
    assert [results[number] for number in (0, 1, 3)] == [[("a", 0)], [("a", 1), ("a", 2)], [("a", 5)]]


def test_a_request_larger_than_the_queue_is_accepted_if_nothing_waits(slow):
    slow.go.set()
    assert run(slow, 1, [("a", [1, 2, 3, 4, 5, 6])]) == [[("a", number) for number in range(1, 7)]]


def test_the_request_of_a_client_that_has_gone_is_not_computed(slow):
    batcher = Batcher(slow, 10, 10)

    async def leave():
        first = asyncio.create_task(batcher.submit("a", [1]))
        await until(slow.started)
        second = asyncio.create_task(batcher.submit("a", [2]))
        await asyncio.sleep(0)
        assert batcher.waiting == 1
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        slow.go.set()
        return await first

    assert asyncio.run(leave()) == [("a", 1)]
    batcher.close()
    assert slow.batches == [("a", [1])]
    assert batcher.waiting == 0


def test_a_request_whose_client_goes_is_given_up_after_the_next_result():
    started, go, computed = threading.Event(), threading.Event(), []

    def compute(call, items):
        started.set()
        for item in items:
            go.wait(10)
            computed.append(item)
            yield item

    batcher = Batcher(compute, 10, 10)

    async def leave():
        request = asyncio.create_task(batcher.submit("a", [1, 2, 3]))
        await until(started)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        go.set()

    asyncio.run(leave())
    batcher.close()
    assert computed == [1]


def test_a_closed_batcher_refuses_requests(slow):
    slow.go.set()
    batcher = Batcher(slow, 10, 10)
    batcher.close()
    with pytest.raises(QueueFullError):
        asyncio.run(batcher.submit("a", [1]))
