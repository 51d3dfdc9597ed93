"""What others see: a release that a page looks through, estimates from it, and its table in other formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incrowd.studio.answers import html, malformed, texts_in, whole_in
from incrowd.studio.pages import markup, render

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.responses import Response

    from incrowd.studio.jobs import Job

_PAGE = 50


def rows(job: Job, asked: Mapping[str, Any]) -> Response:
    """A page of rows or groups."""
    filters, offset = asked.get("filters") or {}, asked.get("offset", 0)
    if not isinstance(filters, dict) or not all(isinstance(text, str) for text in filters.values()):
        raise malformed("Filters are texts, by column.")
    if not isinstance(offset, int) or offset < 0:
        raise malformed("A page begins at a whole number.")
    by, order = texts_in(asked, "by"), asked.get("order") or None
    query = {
        "filters": {name: text for name, text in filters.items() if text},
        "order": None if order is None else str(order),
        "descending": asked.get("descending") is True,
        "offset": offset,
        "limit": _PAGE,
    }
    found = job.ask({"ask": "rows", "by": by, "query": query})
    ends = [end for row in found["rows"] for end in (row["low"], row["estimate"], row["high"]) if end is not None]
    top = max((end for end in ends if end < 9e15), default=0)
    unit = (job.result or {})["unit"]
    return html(render("browse_rows", found=found, grouped=bool(by), limit=_PAGE, top=top, unit=unit, **{
        key: query[key] for key in ("order", "descending")
    }))  # fmt: skip


def estimate(job: Job, asked: Mapping[str, Any]) -> Response:
    """A cross-tabulation of the population, with intervals."""
    options = {name: asked.get(name) or None for name in ("mean", "sum_of", "method")}
    if not all(value is None or isinstance(value, str) for value in options.values()):
        raise malformed("Options are texts.")
    question = {
        "ask": "estimate",
        "by": texts_in(asked, "by"),
        "options": {**options, "total": whole_in(asked, "total")},
    }
    found = job.ask(question)
    chart = markup(found.pop("chart"))
    return html(render("estimated", chart=chart, **found))
