"""Policies, and releases that were made: what is shown, saved, checked and handed on."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from incrowd import api
from incrowd.core.errors import IncrowdError, InputError, PolicyError
from incrowd.studio.folders import Folders
from incrowd.studio.pages import markup, render

_LARGEST = 64 << 20  # bytes of a report or a description that is shown
_SIGNS = {
    "epsilon": "ε",
    "delta": "δ",
    "k": "k",
    "beta": "β",
    "rho": "ρ",
    "selection_epsilon": "ε₁ for choosing levels",
}
_CERTIFICATE = "certificate.json"


# --- policies ---------------------------------------------------------------------------------------------------------


def check(folders: Folders, text: str, base: Path) -> dict[str, Any]:
    """What a policy says, what is wrong with it, and what its columns become at each level."""
    try:
        content = api.policy_outline(text)
    except PolicyError as error:
        return {"valid": False, "content": None, "error": error.to_dict(), "levels": {}, "unconfirmed": {}}
    answer: dict[str, Any] = {"content": content, "error": None, "levels": {}, "unconfirmed": api.unconfirmed(text)}
    try:
        return answer | {"valid": True, "levels": _levels(folders, text, base)}
    except IncrowdError as error:
        answer |= {"valid": False, "error": error.to_dict()}
    with contextlib.suppress(IncrowdError):
        # The columns may be right although the release asks for more, a level of theirs perhaps.
        answer["levels"] = _levels(folders, api.edit_policy(text, ["release"], None), base)
    return answer


def _levels(folders: Folders, text: str, base: Path) -> dict[str, list[dict[str, Any]]]:
    found = api.policy_levels(folders.require_policy(text, base))
    return {name: [{"groups": one.groups, "labels": one.labels} for one in levels] for name, levels in found.items()}


def save(folders: Folders, text: str, path: str, *, overwrite: bool) -> dict[str, str]:
    """Write a policy to one of the folders."""
    target = folders.inside(path)
    api.save_policy(text, target, overwrite=overwrite)
    return {"path": str(target), "base": str(target.parent)}


def open_policy(folders: Folders, path: str) -> dict[str, str]:
    """A policy file."""
    target = folders.inside(path)
    if not target.is_file() or target.suffix.lower() not in {".yaml", ".yml"} or target.stat().st_size > _LARGEST:
        raise InputError("This is not a policy file.", code="policy-file", remedy="Choose a file that ends in .yaml.")
    try:
        text = target.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise PolicyError(
            f"{target.name} cannot be read as UTF-8 text.", code="policy-file", remedy="Save it as UTF-8."
        ) from None
    return {"path": str(target), "base": str(target.parent), "text": text}


# --- releases ---------------------------------------------------------------------------------------------------------


def require_free(folders: Folders, name: str) -> Path:
    """Where a release goes: inside, and nothing there yet."""
    if not name.strip():
        raise InputError("The release needs a folder.", code="output-unwritable", remedy="Name a new folder.")
    target = folders.inside(name)
    if target in folders.roots:
        raise InputError("The release needs a folder of its own.", code="output-exists", remedy="Name a new folder.")
    for place in (target, api.internal_folder(target)):
        if place.exists():
            raise InputError(
                f"{place} exists already.",
                code="output-exists",
                remedy="A release is never overwritten; choose another folder.",
            )
    return target


def require_free_for(folders: Folders, name: str, copies: int) -> tuple[Path, Callable[[], bool]]:
    """Where copies of a release go, and what to do if they are stopped."""
    target = require_free(folders, name) if copies == 1 else folders.inside(name)
    places = (
        [target] if copies == 1 else [require_free(folders, str(one)) for one in api.release_folders(target, copies)]
    )
    undos = [undoing(place) for place in places]

    def undo() -> bool:
        complete = [undo_one() for undo_one in undos]
        return all(complete)

    return target, undo


def places_of(target: Path, copies: int) -> set[Path]:
    """All that copies of a release write to, the publisher's own folders among them."""
    folders = api.release_folders(target, copies)
    return {*folders, *map(api.internal_folder, folders)}


def overlap(some: set[Path], others: set[Path]) -> bool:
    """Whether a place is among the others, or in one of them, or one of them in it."""

    def within(inner: set[Path], outer: set[Path]) -> bool:
        return any(not outer.isdisjoint((place, *place.parents)) for place in inner)

    return within(some, others) or within(others, some)


def undoing(target: Path) -> Callable[[], bool]:
    """What to do when a release was stopped: remove all traces, unless it is complete."""
    started = time.time() - 1

    def undo() -> bool:
        if not target.parent.is_dir():
            return False
        half_written = re.compile(rf"\.{re.escape(target.name)}(\.internal)?\.[0-9a-f]{{8}}\.part")
        for path in target.parent.iterdir():
            if half_written.fullmatch(path.name):
                shutil.rmtree(path, ignore_errors=True)
        internal = api.internal_folder(target)
        if target.is_dir():
            return True
        if internal.is_dir() and internal.stat().st_ctime >= started:
            shutil.rmtree(internal, ignore_errors=True)
        return False

    return undo


def view(folders: Folders, name: str) -> str:
    """A release: its certificate, its reports, its lattice."""
    folder = _release(folders, name)
    internal = api.internal_folder(folder)
    certificate = api.read_certificate(folder)
    mechanism = _dictionary(certificate.get("mechanism"))
    lattice, picture = _lattice(folders, internal), None
    if lattice is not None:
        picture = markup(api.draw_lattice(lattice))
    return render(
        "release_view",
        folder=str(folder),
        internal=str(internal) if _is_file(folders, internal / "report.html") else None,
        certificate=certificate,
        promise=_dictionary(certificate.get("promise")),
        mechanism=mechanism,
        numbers=_numbers(_dictionary(certificate.get("promise"))) + _numbers(mechanism),
        whole=json.dumps(certificate, indent=2, ensure_ascii=False)[:200_000],
        groups=api.mechanism_forms().get(str(mechanism.get("name")), {}).get("groups", "release"),
        lattice=lattice,
        picture=picture,
    )


def report(folders: Folders, name: str, which: str) -> bytes:
    """One of the reports on a release."""
    folder = _release(folders, name)
    path = (folder if which == "public" else api.internal_folder(folder)) / "report.html"
    if not _is_file(folders, path):
        raise InputError("There is no such report.", code="release-unreadable", remedy="Choose another folder.")
    return path.read_bytes()


def archive(folders: Folders, name: str, scratch: Path) -> tuple[str, Path]:
    """The public folder as a ZIP file, and never anything else."""
    folder = _release(folders, name)
    handle, place = tempfile.mkstemp(dir=scratch, suffix=".zip")
    with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for part in (_CERTIFICATE, *sorted(_dictionary(api.read_certificate(folder).get("files")))):
            path = folder / part  # a forged certificate may name any place
            if path.is_relative_to(folder) and _is_file(folders, path, largest=None):
                packed.write(path, f"{folder.name}/{part}")
    return f"{folder.name}.zip", Path(place)


def folder_of(folders: Folders, name: Any) -> Path:
    """The folder of a release, by its name."""
    return _release(folders, str(name or ""))


def _release(folders: Folders, name: str) -> Path:
    folder = folders.inside(name)
    if not _is_file(folders, folder / _CERTIFICATE):
        raise InputError(
            "This folder holds no release.", code="release-unreadable", remedy="Choose one with a certificate.json."
        )
    return folder


def _is_file(folders: Folders, path: Path, largest: int | None = _LARGEST) -> bool:
    """An ordinary file of a bearable size that no link leads away from."""
    if not path.is_file() or folders.inside(str(path)) != path:
        return False
    return largest is None or path.stat().st_size <= largest


def _lattice(folders: Folders, internal: Path) -> dict[str, Any] | None:
    path = internal / "lattice.json"
    if not _is_file(folders, path):
        return None
    try:
        content = json.loads(path.read_bytes())
    except ValueError:
        return None
    return content if isinstance(content, dict) else None


def _dictionary(thing: Any) -> dict[str, Any]:
    return thing if isinstance(thing, dict) else {}


def _numbers(thing: dict[str, Any]) -> list[tuple[str, Any]]:
    """The numbers in a part of a certificate, by their names for people, those with a sign of their own first."""
    found = {key: n for key, n in thing.items() if isinstance(n, int | float) and not isinstance(n, bool)}
    known = [(sign, found.pop(key)) for key, sign in _SIGNS.items() if key in found]
    return known + [(key.replace("_", " "), value) for key, value in found.items()]
