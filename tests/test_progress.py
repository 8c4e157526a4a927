"""Progress: a line that rewrites itself at a terminal, one a tenth elsewhere."""

import io

from sparselab.progress import collect, progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_log_gets_one_line_a_tenth_however_many_items():
    stream = io.StringIO()
    assert list(progress(range(1000), "solving", stream=stream)) == list(range(1000))
    lines = stream.getvalue().splitlines()
    assert len(lines) == 10
    assert lines[-1].startswith("solving: 100 % (1000 of 1000")


def test_few_items_get_a_line_each():
    stream = io.StringIO()
    list(progress("abc", "x", stream=stream))
    assert [line.split("(")[1].split(",")[0] for line in stream.getvalue().splitlines()] == [
        "1 of 3",
        "2 of 3",
        "3 of 3",
    ]


def test_a_terminal_gets_one_line_that_is_rewritten():
    stream = Terminal()
    list(progress(range(200), "x", stream=stream))
    assert stream.getvalue().count("\n") == 1
    assert stream.getvalue().count("\r") == 101


def test_an_iterator_needs_a_total_and_silence_can_be_asked_for():
    stream = io.StringIO()
    assert list(progress(iter("ab"), "x", stream=stream)) == ["a", "b"]
    assert list(progress("ab", "x", stream=stream, enabled=False)) == ["a", "b"]
    assert stream.getvalue() == ""
    assert list(progress(iter("ab"), "x", total=2, stream=stream)) == ["a", "b"]
    assert "2 of 2" in stream.getvalue()


def test_an_interruption_keeps_what_was_collected():
    def interrupted():
        yield "a"
        yield "b"
        raise KeyboardInterrupt

    assert collect(interrupted(), "x", 3, enabled=False) == (["a", "b"], True)
    assert collect("abc", "x", enabled=False) == (["a", "b", "c"], False)
