"""Files that were uploaded: streamed to a private folder, never run, gone when the studio ends."""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

from incrowd.core.errors import InputError
from incrowd.core.numbers import number


class Upload(NamedTuple):
    """A file that somebody sent."""

    id: str
    name: str
    path: Path
    bytes: int


class Uploads:
    """What was uploaded, by an id that nobody can guess."""

    def __init__(self, folder: Path, largest: int) -> None:
        self._folder, self._largest = folder, largest
        self._known: dict[str, Upload] = {}

    async def receive(self, name: str, parts: AsyncIterator[bytes]) -> Upload:
        """Take a file in, piece by piece; if it is too large or cut short, nothing of it stays."""
        identity = secrets.token_urlsafe(16)
        place = self._folder / identity
        place.mkdir(mode=0o700)
        path, size = place / _plain(name), 0
        try:
            with path.open("xb") as file:
                path.chmod(0o600)
                async for part in parts:
                    size += len(part)
                    if size > self._largest:
                        raise InputError(
                            f"An uploaded file may have {number(round(self._largest / 2**20))} MB.",
                            code="request-too-large",
                            remedy="Put it into one of the studio's folders and open it there.",
                        )
                    file.write(part)
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise
        self._known[identity] = Upload(identity, path.name, path, size)
        return self._known[identity]

    def __getitem__(self, identity: str) -> Upload:
        if identity not in self._known:
            raise InputError("This upload is gone.", code="not-found", remedy="Upload the file again.")
        return self._known[identity]

    def forget(self, identity: str) -> None:
        """Remove a file."""
        upload = self._known.pop(identity, None)
        if upload is not None:
            shutil.rmtree(upload.path.parent, ignore_errors=True)


def _plain(name: str) -> str:
    """A name that is only a name: the ending says what kind of file it is."""
    last = re.split(r"[/\\]", name)[-1]
    plain = re.sub(r"[^\w .()-]", "_", last).lstrip(". -")
    return plain.encode(errors="replace")[-120:].decode(errors="ignore") or "table"  # file systems count bytes
