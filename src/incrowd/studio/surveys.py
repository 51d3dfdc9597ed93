"""Questionnaires by which respondents randomise their own answers, and what a collector has taken in."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from incrowd import api
from incrowd.core.errors import InputError
from incrowd.studio.folders import Folders
from incrowd.studio.pages import markup, render


def make(folders: Folders, asked: Mapping[str, Any], base: Path) -> str:
    """Make a questionnaire by a policy, and show it."""
    policy = folders.require_policy(str(asked.get("text", "")), base)
    records = asked.get("records")
    if not isinstance(records, int) or isinstance(records, bool):
        raise InputError(
            "How many people are expected is a whole number.", code="parameter-range", remedy="Write one of 2 or more."
        )
    target = folders.inside(str(asked.get("path", "")), base=base)
    if target.suffix.lower() != ".json":
        raise InputError("A questionnaire is a JSON file.", code="output-format", remedy="Name it something.json.")
    texts = asked.get("texts")
    wording = folders.inside(str(texts), base=base) if texts else None
    key = folders.inside(str(asked["sign_with"]), base=base) if asked.get("sign_with") else None
    overwrite = asked.get("overwrite") is True
    api.make_questionnaire(policy, target, records=records, texts=wording, sign_with=key, overwrite=overwrite)
    return view(folders, str(target))


def view(folders: Folders, name: str) -> str:
    """A questionnaire as respondents see it, with what it keeps and promises, and how the collector is started."""
    path = folders.inside(name)
    asked = api.open_questionnaire(path)
    store, folder = path.with_suffix(".sqlite"), path.with_name(f"{path.stem}-release")
    return render(
        "questionnaire",
        asked=asked,
        path=str(path),
        store=str(store),
        collect=f"incrowd collect {shlex.quote(str(path))} --store {shlex.quote(str(store))}",
        publish=f"incrowd collected {shlex.quote(str(store))} -o {shlex.quote(str(folder))}",
        folder=str(folder),
        collected=markup(collection(folders, str(store))),
    )


def collection(folders: Folders, name: str) -> str:
    """How much a collector has taken in."""
    store = folders.inside(name)
    return render("collection", store=str(store), found=api.collected(store) if store.is_file() else None)
