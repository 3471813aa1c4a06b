import io

from nmt_jax import progress


def test_progress_is_displayed_on_a_terminal_only(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    monkeypatch.setattr(progress, "DELAY", 0.0)
    for stream in (Terminal(), io.StringIO()):
        monkeypatch.setattr("sys.stderr", stream)
        for total in (None, 3):
            assert list(progress.track(iter("abc"), "letters", total)) == ["a", "b", "c"]
        assert ("letters" in stream.getvalue()) == stream.isatty()
        assert ("0:00:00" in stream.getvalue()) == stream.isatty()  # the time left
