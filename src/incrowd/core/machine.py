"""What this process has: memory, and libraries that not everybody needs."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

from incrowd.core.errors import DataError, MissingLibraryError

LEAST_ADDRESS_SPACE = 2 * 10**9
"""Bytes below which libraries that incrowd uses fail to load, or crash."""

_CGROUP = Path("/sys/fs/cgroup")
_CGROUP_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")


def memory() -> int:
    """The bytes of memory that this process may use: the machine's, a container's limit, or half its address space."""
    return min([_installed(), *_container_limits(), *(limit // 2 for limit in _address_space())])


def require_address_space() -> None:
    """Refuses to begin where libraries would crash without a word.

    Raises:
        DataError: the process may use less address space than they need.
    """
    for limit in _address_space():
        if limit < LEAST_ADDRESS_SPACE:
            raise DataError(
                f"This process may use {limit // 10**6:,} MB of address space; at least "
                f"{LEAST_ADDRESS_SPACE // 10**6:,} MB are needed.",
                code="data-memory",
                remedy="Raise the limit: ulimit -v unlimited.",
            )


def library(name: str, extra: str) -> Any:
    """A library of an extra, or an error that says how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingLibraryError(
            f"Such a table needs {name.partition('.')[0].replace('_', '-')}, which is not installed.",
            code="engine-missing",
            remedy=f"Install it: pip install 'incrowd[{extra}]'.",
        ) from None


def _installed() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not on Windows
        return 4 * 10**9


def _container_limits() -> list[int]:
    limits = []
    for name in _CGROUP_LIMITS:
        try:
            limits.append(int((_CGROUP / name).read_text(encoding="ascii")))
        except (OSError, ValueError):  # there is none, or it is "max"
            continue
    return limits


def _address_space() -> list[int]:
    if sys.platform == "win32":
        return []
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return [] if limit == resource.RLIM_INFINITY else [limit]
