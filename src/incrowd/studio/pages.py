"""Pages and parts of pages, from templates that escape whatever is put into them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from incrowd import api
from incrowd._version import __version__
from incrowd.core.numbers import number, percent

HERE = Path(__file__).parent
_TITLES = {
    "start": "Start",
    "data": "Table and policy",
    "release": "Release",
    "browse": "What others see",
    "whatif": "What if",
    "plan": "Plan",
    "collect": "Collect",
    "audit": "Audit",
    "ledger": "Ledger",
    "verify": "Verify",
    "attacks": "Attacks",
    "gallery": "Gallery",
}
PAGES = {name: title for name, title in _TITLES.items() if (HERE / "templates" / f"{name}.html").is_file()}
"""The pages with a template of their own, in the order of the navigation, with their titles."""

JOURNEY = {
    "table": ("Table", "data", "table"),
    "policy": ("Policy", "data", "policy-part"),
    "rehearsal": ("Rehearsal", "release", "rehearsal"),
    "release": ("Release", "release", "publication"),
    "seen": ("What others see", "browse" if "browse" in PAGES else "release", ""),
}
"""The way from a table to what others see of it: the title of each step, its page, and its part of the page."""

TOOLS = {name: title for name, title in PAGES.items() if name not in {"start", "data", "release", "browse"}}
"""The pages beside that way."""


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
    made.filters |= {"number": number, "percent": percent, "coded": _coded}
    made.globals |= {"pages": PAGES, "journey": JOURNEY, "tools": TOOLS, "version": __version__}
    made.globals |= {"examples": api.EXAMPLES, "encodings": api.ENCODINGS}
    made.globals["mechanisms"] = json.dumps(api.mechanism_forms())
    made.globals["planners"] = [p for p in api.planners().values() if p.name in OWN_PLANS or not p.of_table]
    made.globals["own_plans"] = OWN_PLANS
    made.globals["formats"] = api.output_formats()
    return made


def render(name: str, **content: Any) -> str:
    """A template with its content."""
    text: str = _environment().get_template(f"{name}.html").render(**content)
    return text


def markup(text: str) -> Any:
    """What `incrowd.api` has drawn: markup already, in which every text is escaped."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704


def _coded(text: str) -> Any:
    """A text in which `code` is marked as one."""
    from markupsafe import Markup, escape

    parts = text.split("`")
    shown = [Markup("<code>{}</code>").format(part) if i % 2 else escape(part) for i, part in enumerate(parts)]
    return Markup("").join(shown) if len(parts) % 2 else escape(text)


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
