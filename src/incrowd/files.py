"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from incrowd.errors import InputError


def write_whole(path: str | Path, content: bytes) -> Path:
    """Write a file under another name, flush it to disk, then rename it: nobody ever sees half of it."""
    target = Path(path)
    try:
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    except OSError as error:
        raise cannot_write(target, error) from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files for the owner's eyes only; what is written here is meant to be passed on.
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(target)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise cannot_write(target, error) from None
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
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
