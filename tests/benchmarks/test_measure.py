"""How benchmarks measure."""

from benchmarks import measure


def test_what_comes_before_a_call_is_called_each_time_but_for_the_warm_up():
    calls = []
    assert measure.cpu_seconds(lambda: calls.append("work"), 2, before=lambda: calls.append("before")) >= 0
    assert calls == ["work", "before", "work", "before", "work"]
