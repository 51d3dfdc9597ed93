"""Telling how far work has come: to a function, or by a bar in a terminal or a notebook."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any, ParamSpec, TypeVar

Progress = Callable[[str, float], None]
"""Called with what is being done and the part of it that is done."""

P = ParamSpec("P")
T = TypeVar("T")


def drawing(function: Callable[P, T]) -> Callable[P, T]:
    """Lets a function be called with `progress=True`: then a bar is drawn. It sees a function, or None."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        asked: Any = kwargs.get("progress")
        if not isinstance(asked, bool):
            return function(*args, **kwargs)
        given: dict[str, Any] = dict(kwargs)
        if not asked:
            return function(*args, **{**given, "progress": None})
        with _bar_for_people() as tell:
            return function(*args, **{**given, "progress": tell})

    return call


def teller(progress: Progress | bool | None) -> Progress:
    """What to call: nothing in particular, if nobody asked."""
    return progress if callable(progress) else lambda _what, _part: None


@contextmanager
def _bar_for_people() -> Iterator[Progress]:
    if _in_notebook():
        with notebook_bar() as tell:
            yield tell
    elif sys.stderr is not None and sys.stderr.isatty():
        with terminal_bar() as tell:
            yield tell
    else:
        yield teller(None)


def _in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


@contextmanager
def terminal_bar() -> Iterator[Progress]:
    """A bar on standard error, which disappears when the work is done."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=1.0)
        yield lambda what, part: bar.update(task, description=what, completed=part)


@contextmanager
def notebook_bar() -> Iterator[Progress]:
    """A bar below the cell that runs; it needs no widgets."""
    from IPython.display import display

    bar = ProgressBar()
    shown = display(bar, display_id=True)

    def tell(what: str, part: float) -> None:
        before = str(bar)
        bar.what, bar.part = what, min(max(part, 0.0), 1.0)
        if shown is not None and str(bar) != before:  # not more often than anyone sees
            shown.update(bar)

    yield tell
    tell("done", 1.0)


class ProgressBar:
    """A bar as HTML."""

    def __init__(self) -> None:
        self.what, self.part = "starting", 0.0

    def __repr__(self) -> str:
        return f"{self.what}: {round(100 * self.part)} %"

    def _repr_html_(self) -> str:
        return f'<progress max="100" value="{round(100 * self.part)}"></progress> {escape(self.what)}'
