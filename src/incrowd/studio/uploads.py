"""Files and folders that were sent here: streamed to a private folder, never run, gone when the studio ends."""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from incrowd.core.errors import InputError
from incrowd.core.numbers import number

_OPEN = 12  # dropped folders at once: more than can wait to be verified
_MOST_FILES = 4000
_DEEPEST = 2
_WITHIN = re.compile(r"[^\W_.][^/\\\x00-\x1f\x7f:]*")


class Upload(NamedTuple):
    """A file that somebody sent."""

    id: str
    name: str
    path: Path
    bytes: int


@dataclass
class _Taken:
    """How much was taken in, of what may be."""

    largest: int
    bytes: int = 0
    files: int = 0

    def add(self, size: int) -> None:
        self.bytes += size
        if self.bytes > self.largest:
            raise InputError(
                f"What is uploaded may have {number(round(self.largest / 2**20))} MB.",
                code="request-too-large",
                remedy="Put it into one of the studio's folders and open it there.",
            )


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
        path = place / _plain(name)
        try:
            taken = _Taken(self._largest)
            await _write(path, parts, taken.add)
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise
        self._known[identity] = Upload(identity, path.name, path, taken.bytes)
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


class Dropped:
    """Folders that somebody drops in to have them verified, file by file. None is kept beyond that."""

    def __init__(self, folder: Path, largest: int) -> None:
        self._folder, self._largest = folder, largest
        self._taken: dict[str, _Taken] = {}

    def open(self) -> str:
        """A new empty folder. Of those that nobody has had verified, only the last few are kept."""
        while len(self._taken) >= _OPEN:
            self.forget(next(iter(self._taken)))
        identity = secrets.token_urlsafe(16)
        (self._folder / identity).mkdir(mode=0o700)
        self._taken[identity] = _Taken(self._largest)
        return identity

    async def receive(self, identity: str, name: str, parts: AsyncIterator[bytes]) -> None:
        """Take one of its files in; whatever goes wrong, the whole folder goes."""
        folder = self[identity]
        taken = self._taken[identity]

        def add(size: int) -> None:
            """Several files may arrive at once, and the folder may have gone before this part came."""
            self[identity]
            taken.add(size)

        try:
            taken.files += 1
            if taken.files > _MOST_FILES:
                raise InputError(
                    f"A dropped folder may have {number(_MOST_FILES)} files.",
                    code="request-too-large",
                    remedy="Put it into one of the studio's folders and open it under Release.",
                )
            path = folder / _name_within(name)
            if path.parent != folder:
                path.parent.mkdir(mode=0o700, exist_ok=True)
            await _write(path, parts, add)
            self[identity]
        except FileExistsError:
            self.forget(identity)
            raise InputError(
                "Two of the files have the same name.", code="request-malformed", remedy="Drop one folder at a time."
            ) from None
        except FileNotFoundError:
            self.forget(identity)
            raise _gone() from None
        except BaseException:
            self.forget(identity)
            raise

    def forget(self, identity: str) -> None:
        """Remove a folder, if it is there still."""
        if self._taken.pop(identity, None) is not None:
            shutil.rmtree(self._folder / identity, ignore_errors=True)

    def __getitem__(self, identity: str) -> Path:
        folder = self._folder / identity
        if identity not in self._taken or not folder.is_dir():  # the work that verifies a folder removes it
            raise _gone()
        return folder


def _gone() -> InputError:
    return InputError("This folder is gone.", code="not-found", remedy="Drop it again.")


async def _write(path: Path, parts: AsyncIterator[bytes], add: Callable[[int], None]) -> None:
    """A new file that only its owner can read; `add` is told of each part before it is written, and may refuse it."""
    with path.open("xb") as file:
        path.chmod(0o600)
        async for part in parts:
            add(len(part))
            file.write(part)


def _name_within(name: str) -> str:
    """The name of a file in a folder or in one below it, as it is: another name would be another release."""
    parts = name.split("/")
    if len(parts) > _DEEPEST or not all(_WITHIN.fullmatch(part) and len(part.encode()) <= 200 for part in parts):
        raise InputError(
            "A file of this name is in no release.",
            code="request-malformed",
            remedy="Drop the folder that `incrowd release` wrote, with nothing else in it.",
        )
    return name


def _plain(name: str) -> str:
    """A name that is only a name: the ending says what kind of file it is."""
    last = re.split(r"[/\\]", name)[-1]
    plain = re.sub(r"[^\w .()-]", "_", last).lstrip(". -")
    return plain.encode(errors="replace")[-120:].decode(errors="ignore") or "table"  # file systems count bytes
