"""Pages and parts of pages, from templates that escape whatever is put into them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from incrowd import api
from incrowd._version import __version__

HERE = Path(__file__).parent
PAGES = {
    "plan": "Plan",
    "data": "Data and policy",
    "release": "Release",
    "audit": "Audit",
    "ledger": "Ledger",
    "attacks": "Attacks",
}


OWN_PLANS = ("crowd", "pram", "sample")
"""Planners with a page of their own; any other has a form made from its options."""


@cache
def _environment() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"number": api.print_number, "percent": api.print_percent}
    made.globals |= {"pages": PAGES, "version": __version__, "mechanisms": json.dumps(api.mechanism_forms())}
    made.globals["planners"] = [p for p in api.planners().values() if p.name in OWN_PLANS or not p.of_table]
    made.globals["own_plans"] = OWN_PLANS
    return made


def render(name: str, **content: Any) -> str:
    """A template with its content."""
    text: str = _environment().get_template(f"{name}.html").render(**content)
    return text


def markup(text: str) -> Any:
    """What `incrowd.api` has drawn: markup already, in which every text is escaped."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704


@cache
def static_files() -> dict[str, tuple[bytes, str]]:
    """What pages load besides themselves, with the kind of each."""
    kinds = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
    files = {
        path.name: (path.read_bytes(), kinds[path.suffix])
        for path in sorted((HERE / "static").iterdir())
        if path.suffix in kinds
    }
    style, kind = files["studio.css"]
    return files | {"studio.css": (api.style_sheet().encode() + b"\n" + style, kind)}
