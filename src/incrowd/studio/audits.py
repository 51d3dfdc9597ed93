"""What a page may ask of an audit; whatever it names lies inside the folders."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from typing import Any

from incrowd.studio.answers import malformed, texts_in, whole_in
from incrowd.studio.folders import Folders

_LISTS = ("quasi", "sensitive", "people", "ordered", "domains")
_MOST_WORST = 1000


def asked(folders: Folders, said: Mapping[str, Any]) -> dict[str, Any]:
    """Its arguments, and under `require` what the table must have."""
    population = str(said.get("population") or "").strip()
    worst = whole_in(said, "worst")
    options = {
        "adversaries": [_adversary(folders, text) for text in texts_in(said, "adversaries")],
        "sampling_rate": _number(said, "sampling_rate"),
        "threshold": _number(said, "threshold"),
        "weights": str(said.get("weights") or "") or None,
        "population": folders.table(population) if population else None,
        "worst": None if worst is None else min(worst, _MOST_WORST),
        "others_as_quasi": said.get("others_as_quasi") is True,
        "show_values": said.get("show_values") is True,
    }
    given = {name: value for name, value in options.items() if value is not None}
    return {"options": {name: texts_in(said, name) for name in _LISTS} | given, "require": texts_in(said, "require")}


def _adversary(folders: Folders, text: str) -> str:
    """Her spelling, with the table that she has seen as a path inside."""
    try:
        words = shlex.split(text)
    except ValueError:
        return text  # which the audit refuses, with the reason
    seen = [word for word in words if word.startswith("earlier=")]
    if not seen:
        return text
    return shlex.join(
        f"earlier={folders.inside(word.removeprefix('earlier='))}" if word in seen else word for word in words
    )


def _number(said: Mapping[str, Any], name: str) -> float | None:
    given = said.get(name)
    if given is None or given == "":
        return None
    try:
        number = float(given)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise malformed(f"{name.replace('_', ' ')} is a number.")
    return number
