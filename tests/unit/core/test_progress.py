"""Progress: told to a function, drawn as a bar, or not at all."""

import io
import sys
import types

import pytest

from incrowd.core.progress import ProgressBar, drawing, teller


@drawing
def work(*, progress=None):
    """Work in two steps; returns what it was given."""
    tell = teller(progress)
    tell("counting", 0.25)
    tell("drawing <b>", 0.5)
    tell("drawing <b>", 0.5001)
    return progress


class Screen(io.StringIO):
    def isatty(self):
        return True


class Notebook:
    """What IPython has of it: a shell with a kernel, and places that can be drawn again."""

    def __init__(self):
        self.pages = []
        self.kernel = object()

    def display(self, thing, *, display_id):
        assert display_id
        self.update(thing)
        return self

    def update(self, thing):
        self.pages.append(thing._repr_html_())


@pytest.fixture
def notebook(monkeypatch):
    made = Notebook()
    package, display = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    package.get_ipython = lambda: made
    display.display = made.display
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return made


def test_a_function_is_told_what_is_done_and_how_much_of_it():
    told = []
    work(progress=lambda what, part: told.append((what, part)))
    assert told == [("counting", 0.25), ("drawing <b>", 0.5), ("drawing <b>", 0.5001)]


@pytest.mark.parametrize("nobody", [None, False])
def test_nobody_is_told_unless_asked(nobody, capsys):
    assert work(progress=nobody) is None
    assert capsys.readouterr() == ("", "")


def test_a_terminal_has_a_bar(monkeypatch):
    screen = Screen()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", screen)
    assert callable(work(progress=True))
    assert "drawing <b>" in screen.getvalue()


def test_a_file_has_none(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    assert callable(work(progress=True))
    assert not screen.getvalue()
    monkeypatch.setattr(sys, "stderr", None)
    work(progress=True)


def test_a_notebook_has_a_bar_below_the_cell(notebook, capsys):
    work(progress=True)
    values = [page.partition('value="')[2].partition('"')[0] for page in notebook.pages]
    assert values == ["0", "25", "50", "100"]  # drawn once, though told twice
    assert "drawing &lt;b&gt;" in notebook.pages[2]
    assert capsys.readouterr() == ("", "")


def test_a_prompt_of_ipython_is_no_notebook(notebook, monkeypatch):
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    del notebook.kernel
    work(progress=True)
    assert not notebook.pages
    assert "counting" in screen.getvalue() or "drawing" in screen.getvalue()


def test_a_bar_that_stopped_is_not_called_done(notebook):
    @drawing
    def fail(*, progress=None):
        progress("counting", 0.5)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail(progress=True)
    assert 'value="50"' in notebook.pages[-1]


def test_a_bar_is_a_text_as_well():
    assert repr(ProgressBar()) == "starting: 0 %"
