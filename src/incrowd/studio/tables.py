"""How a table's file is read: what a page may say about it, and what its beginning looks like then."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from incrowd import api
from incrowd.core.errors import InputError
from incrowd.studio.folders import Folders

_DELIMITERS = {"tab": "\t"}


def reading(folders: Folders, asked: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """What a page says of how a file is read; what it leaves open is found out."""
    said = asked.get("reading")
    texts = said.items() if isinstance(said, dict) else ()
    given = {str(key): text for key, text in texts if isinstance(text, str) and text}
    if "delimiter" in given:
        given["delimiter"] = _DELIMITERS.get(given["delimiter"], given["delimiter"])
    signs = [given[key] for key in ("delimiter", "quote", "decimal") if key in given]
    if given.keys() - {"encoding", "delimiter", "quote", "decimal", "codebook"} or any(
        len(sign) != 1 for sign in signs
    ):
        raise InputError("There is no such way to read.", code="request-malformed", remedy="Load the page again.")
    if "codebook" in given:
        given["codebook"] = str(folders.inside(given["codebook"], base=base))
    return given


def preview(path: str, asked: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, Any]:
    """The first lines of a text file, in the encoding that is given or else the first that fits."""
    unfit = asked.get("unfit")
    found = api.preview_text(path, unfit=[str(one) for one in unfit] if isinstance(unfit, list) else (), **given)
    return {
        "encoding": found.encoding,
        "delimiter": "tab" if found.delimiter == "\t" else found.delimiter,
        "lines": [[field[:60] for field in line[:40]] for line in found.lines],
    }
