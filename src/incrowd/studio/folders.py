"""The folders that were named at the start: nothing else can be read or written through the studio."""

from __future__ import annotations

import contextlib
import glob
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from incrowd import api
from incrowd.core.errors import InputError

_KINDS = {
    "table": (".csv", ".tsv", ".tab", ".psv", ".txt", ".dat", ".data", ".parquet", ".parq", ".pq", ".jsonl", ".ndjson",
              ".gz", ".zst", ".sqlite", ".db", ".sqlite3"),
    "policy": (".yaml", ".yml"),
    "ledger": (".sqlite", ".sqlite3", ".db", ".ledger"),
    "counts": (".csv",),
    "codebook": (".csv", ".tsv", ".json"),
    "texts": (".yaml", ".yml"),
    "questionnaire": (".json",),
    "key": (".pem",),
}  # fmt: skip
# A database may be a table, a ledger or what a collector keeps; only what is plainly a table is listed.
_LISTED = {
    "table": tuple(ending for ending in _KINDS["table"] if ending not in _KINDS["ledger"]),
    "policy": _KINDS["policy"],
}
_MOST = 2000  # entries of a folder that are listed


@dataclass(frozen=True)
class Folders:
    """Where files may be."""

    roots: tuple[Path, ...]

    @classmethod
    def of(cls, named: Sequence[str | Path]) -> Folders:
        """These folders, which must exist."""
        roots = []
        for name in named:
            root = Path(name).resolve()
            if not root.is_dir():
                raise InputError(f"There is no folder {name}.", code="path-outside", remedy="Name folders that exist.")
            if root not in roots:
                roots.append(root)
        return cls(tuple(roots))

    def inside(self, name: str, *, base: Path | None = None) -> Path:
        """The place of that name with every link followed, or an error if it lies outside.

        Args:
            name: an absolute path, or one relative to the base.
            base: the first of the folders, if not given.
        """
        if not name.strip() or "\x00" in name or "://" in name:
            raise InputError("This is not a file name.", code="path-outside", remedy="Choose a file by its path.")
        try:
            path = ((base or self.roots[0]) / name).resolve()
            path.exists()  # refuses a name that is too long
        except (OSError, RuntimeError, ValueError):
            raise InputError("This is not a file name.", code="path-outside", remedy="Choose a file.") from None
        if not self._holds(path):
            raise InputError(
                "This path leads out of the folders that the studio was given.",
                code="path-outside",
                remedy=f"Start it with that folder as well: incrowd studio FOLDER. Open are: {self}.",
            )
        return path

    def _holds(self, path: Path) -> bool:
        return any(path == root or root in path.parents for root in self.roots)

    def table(self, name: str, *, base: Path | None = None) -> list[str]:
        """The files of a table, given by a name or a pattern, all of them inside."""
        if glob.has_magic(name):
            start = base or self.roots[0]
            fixed = start.joinpath(*(part for part in Path(name).parts if not glob.has_magic(part)))
            self.inside(str(fixed))  # before anything is looked for
            # Only what was asked for is a pattern; the folder's own name may hold brackets.
            pattern = name if Path(name).is_absolute() else f"{glob.escape(str(start))}/{name}"
            return [str(self.inside(str(path))) for path in api.find_files([pattern])]
        return [str(self.inside(name, base=base))]

    def require_policy(self, text: str, base: Path) -> Any:
        """A policy, all of whose files lie inside."""
        policy = api.policy_from_text(text)  # looks for no file
        for name in api.policy_paths(policy):
            # The data may be a pattern; every other name is taken as it is written.
            if name != policy.data.path or not glob.has_magic(name):
                self.inside(name, base=base)
        if policy.data.path is not None:
            self.table(policy.data.path, base=base)
        return api.policy_from_text(text, base)

    def listing(self, name: str | None, kind: str) -> dict[str, Any]:
        """What there is to choose from in a folder: other folders, and files of a kind."""
        here = self.inside(name) if name else self.roots[0]
        if not here.is_dir():
            here = here.parent
        if not here.is_dir() or not self._holds(here):
            raise InputError("There is no such folder.", code="not-found", remedy="Choose one that is there.")
        folders, files = [], []
        try:
            entries = self._entries(here)
        except OSError:
            raise InputError(
                "This folder cannot be read.", code="not-found", remedy="Choose one that you may read."
            ) from None
        for path, found in entries:
            if stat.S_ISDIR(found.st_mode):
                folders.append({"name": path.name, "path": str(path), "release": _is_release(path)})
            elif path.name.lower().endswith(_KINDS.get(kind, ())):
                files.append({"name": path.name, "path": str(path), "bytes": found.st_size})
        above = here.parent if here not in self.roots else None
        return {
            "folder": str(here),
            "parent": str(above) if above else None,
            "roots": [str(root) for root in self.roots],
            "folders": folders,
            "files": files,
        }

    def recent(self, most: int = 6) -> dict[str, list[dict[str, Any]]]:
        """The tables, policies and releases that were last worked on, in the folders and one level below them."""
        found: dict[str, list[tuple[float, Path]]] = {"table": [], "policy": [], "release": []}
        for root in self.roots:
            for folder in [root, *self._below(root)]:
                if _is_release(folder):
                    found["release"].append((folder.stat().st_mtime, folder))
                    continue
                for path, its in self._readable(folder):
                    name = path.name.lower()
                    kind = next((kind for kind, endings in _LISTED.items() if name.endswith(endings)), None)
                    beside = name.endswith(".texts.yaml") or "_hierarchy_" in name  # belongs to another file
                    if kind is not None and stat.S_ISREG(its.st_mode) and not beside:
                        found[kind].append((its.st_mtime, path))
        return {
            kind: [
                {"name": path.name, "path": str(path), "when": when}
                for when, path in sorted(listed, reverse=True)[:most]
            ]
            for kind, listed in found.items()
        }

    def _below(self, folder: Path) -> list[Path]:
        return [
            path
            for path, its in self._readable(folder)
            if stat.S_ISDIR(its.st_mode) and not path.name.endswith(".internal")
        ]

    def _readable(self, folder: Path) -> list[tuple[Path, os.stat_result]]:
        """What is in a folder; nothing if it cannot be read."""
        with contextlib.suppress(OSError):
            return self._entries(folder)
        return []

    def _entries(self, folder: Path) -> list[tuple[Path, os.stat_result]]:
        """What is in a folder and not hidden, by name; links that lead away, or to nothing readable, are left out."""
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if not entry.name.startswith(".")]
        found = []
        for path in (folder / name for name in sorted(names, key=str.lower)[:_MOST]):
            with contextlib.suppress(OSError, RuntimeError):  # links that go round
                if not path.is_symlink() or self._holds(path.resolve()):
                    found.append((path, path.stat()))
        return found

    def __str__(self) -> str:
        return ", ".join(str(root) for root in self.roots)


def _is_release(folder: Path) -> bool:
    with contextlib.suppress(OSError):  # it cannot be read
        return (folder / "certificate.json").is_file()
    return False
