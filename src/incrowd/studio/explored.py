"""What if: the table that a page keeps, its moves, and what is drawn of them. All of it is internal, and void."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from incrowd import api
from incrowd.studio.answers import as_json, changes_in, html, malformed
from incrowd.studio.folders import Folders
from incrowd.studio.pages import render

if TYPE_CHECKING:
    from starlette.responses import Response

    from incrowd.studio.jobs import Job

_MOST_POINTS = 400


def look(folders: Folders, job: Job, asked: Mapping[str, Any], base: Path) -> Response:
    """A move: what would come of the policy that it gives, as a part of a page and as a point for the picture."""
    text = edited(folders, asked, base)
    seen = job.ask({"ask": "look", "text": text})
    first = job.result or {}
    pairs = {tuple(pair["columns"]): pair for pair in seen["pairs"]}
    names = [column["name"] for column in seen["columns"] if column["published"]]
    shown = render("whatif_seen", seen=seen, total=first["records"], control=first["control"], names=names, pairs=pairs)
    point = {
        "epsilon": seen["point"]["epsilon"],
        "score": seen["score"],
        "mechanism": seen["point"]["mechanism"],
        "records": seen["records"],
    }
    return as_json(
        {"html": shown, "point": point, "text": text, "content": api.policy_outline(text), "levels": seen["levels"]}
    )


def by_mechanism(folders: Folders, job: Job, asked: Mapping[str, Any], base: Path) -> Response:
    """What to change for another mechanism to make the same promise."""
    text, name = edited(folders, asked, base), str(asked.get("mechanism", ""))
    return as_json({"changes": job.ask({"ask": "mechanism", "text": text, "mechanism": name})})


def around(folders: Folders, job: Job, asked: Mapping[str, Any], base: Path) -> Response:
    """One of the changes that lie around a policy, by its number, and what it would give."""
    number = asked.get("number")
    if not isinstance(number, int) or number < 0:
        raise malformed("The changes around a policy have numbers.")
    return as_json(job.ask({"ask": "around", "text": edited(folders, asked, base), "number": number}))


def plot(folders: Folders, job: Job, asked: Mapping[str, Any], base: Path) -> Response:
    """The points that were seen: the promise across, the error upwards."""
    del folders, base
    points = asked.get("points")
    if not isinstance(points, list) or len(points) > _MOST_POINTS:
        raise malformed("The points are a list of moves.")
    return html(api.draw_explored([_point(one) for one in points], (job.result or {})["control"]))


def _point(said: Any) -> dict[str, Any]:
    if not isinstance(said, dict):
        raise malformed("A point is an object.")
    epsilon, score = said.get("epsilon"), said.get("score")
    if not isinstance(score, int | float) or not (epsilon is None or isinstance(epsilon, int | float)):
        raise malformed("A point has an ε, or none, and a score.")
    if epsilon is not None and epsilon < 0:
        raise malformed("The ε of a point is no less than 0.")
    texts = {key: str(said.get(key) or "")[:300] for key in ("mechanism", "words", "name", "key")}
    return {"epsilon": epsilon, "score": float(score), **texts}


def _moved(text: str, place: list[str], content: Any) -> str:
    """One move. An attribute or a section is written anew as a whole, on its own lines: the comments of others stay."""
    most = 2 if place[0] == "attributes" else 1
    whole = here = copy.deepcopy(_within(api.policy_outline(text), place[:most]))
    for part in place[most:-1]:
        here = here.setdefault(part, {}) if isinstance(here, dict) else {}
    if len(place) <= most or not isinstance(here, dict):
        return api.edit_policy(text, place, content)
    if content is None:
        here.pop(place[-1], None)
    else:
        here[place[-1]] = content
    return api.edit_policy(text, place[:most], whole)


def _within(content: Any, place: list[str]) -> Any:
    for part in place:
        content = content.get(part) if isinstance(content, dict) else None
    return content


def edited(folders: Folders, asked: Mapping[str, Any], base: Path) -> str:
    """The policy's text after the moves; whatever it names lies inside."""
    text = str(asked.get("text", ""))
    for change in changes_in(asked):
        if "place" not in change:
            raise malformed("A move changes a place of the policy.")
        text = _moved(text, change["place"], change.get("content"))
    folders.require_policy(text, base)
    return text
