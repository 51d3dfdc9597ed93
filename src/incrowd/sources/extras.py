"""Libraries that not everybody needs."""

from __future__ import annotations

import importlib
from typing import Any

from incrowd.core.errors import MissingLibraryError


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
