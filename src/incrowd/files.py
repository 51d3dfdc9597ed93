"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from incrowd.errors import InputError


@contextmanager
def appearing(target: Path) -> Iterator[BinaryIO]:
    """A file to write to that takes its name when the block is left in peace, and vanishes otherwise.

    It is written under another name in the same folder, flushed to disk, then renamed: nobody ever sees half of it.
    """
    temporary: Path | None = None
    try:
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
        temporary = Path(name)
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files for the owner's eyes only; what is written here is meant to be passed on.
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    except OSError as error:
        raise cannot_write(target, error) from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def write_whole(path: str | Path, content: bytes) -> Path:
    """Write a file whole or not at all."""
    target = Path(path)
    with appearing(target) as file:
        file.write(content)
    return target


def cannot_write(target: Path, error: OSError) -> InputError:
    """The one error for an output that cannot be written."""
    return InputError(
        f"Cannot write {target}: {error.strerror or type(error).__name__}.",
        code="output-unwritable",
        remedy="Choose a folder that exists, may be written to and has room.",
    )


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
