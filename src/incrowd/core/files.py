"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from incrowd.core.errors import InputError


def named(name: str | os.PathLike[str]) -> Path:
    """The path of that name, whether or not there is anything.

    Raises:
        InputError: no file can have that name: it is empty or too long, or holds what the system does not allow.
    """
    try:
        os.lstat(name)
    except ValueError:  # NUL, or a character that the system's encoding lacks
        raise _no_name("it holds a character that no file name can have") from None
    except OSError as error:
        if not os.fspath(name):
            raise _no_name("it is empty") from None
        if error.errno in (errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL):
            raise _no_name((error.strerror or "the system refuses it").lower()) from None
    return Path(name)


def require_absent(
    name: str | os.PathLike[str], remedy: str = "Choose another name, or say that it may be overwritten."
) -> Path:
    """The path of that name, where nothing is yet.

    Raises:
        InputError: something is there, or nothing can be.
    """
    target = named(name)
    if os.path.lexists(target):
        raise InputError(f"{target} exists already.", code="output-exists", remedy=remedy)
    return target


def _no_name(why: str) -> InputError:
    return InputError(f"This cannot be the name of a file: {why}.", code="file-name", remedy="Choose another name.")


@contextmanager
def appearing(target: Path, *, private: bool = False) -> Iterator[BinaryIO]:
    """A file to write to that takes its name when the block ends without an exception, and vanishes otherwise.

    It is written under another name in the same folder, flushed to disk, then renamed: nobody ever sees half of it.
    A private one is for its owner alone.
    """
    import tempfile  # which takes a while, and not every command writes

    temporary: Path | None = None
    try:
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
        temporary = Path(name)
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files for the owner's eyes only; what else is written here is meant to be passed on.
        if not private:
            temporary.chmod(0o666 & ~umask())
        temporary.replace(target)
    except OSError as error:
        raise cannot_write(target, error) from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def read_ordinary(path: str | Path, most: int) -> bytes:
    """The content of an ordinary file: nothing that waits or never ends, and no more than `most` bytes and one.

    Raises:
        OSError: it cannot be read, or is a pipe, a device or a folder, or no file can have that name.
    """
    # Without O_NONBLOCK, opening a pipe would wait for somebody to write to it.
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except ValueError:  # NUL, or a character that the system's encoding lacks
        raise OSError(errno.EINVAL, "No file can have this name") from None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "It is not an ordinary file")
        return file.read(most + 1)


def write_whole(path: str | Path, content: bytes, *, private: bool = False) -> Path:
    """Write a file whole or not at all."""
    target = Path(path)
    with appearing(target, private=private) as file:
        file.write(content)
    return target


def cannot_write(target: Path, error: OSError) -> InputError:
    """The one error for an output that cannot be written."""
    return InputError(
        f"Cannot write {target}: {error.strerror or type(error).__name__}.",
        code="output-unwritable",
        remedy="Choose a folder that exists, may be written to and has room.",
    )


def umask() -> int:
    """The permissions that new files are to go without."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
