"""The certificate: what was promised, on what grounds, and for which file; canonical JSON that anyone can check.

It holds only what the guarantee covers. Never in it: the number of records of the table (but for a randomised one,
which is published with all its records), the size of the sample, the number of suppressed records, or anything else
read off the raw data.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from incrowd._version import __version__
from incrowd.core.signing import canonical, sha256

_SOFTWARE = ("numpy", "cryptography", "duckdb", "pyarrow")


def digest_without(report: str, document: Mapping[str, Any]) -> str:
    """The digest that a report shows: of its certificate as it was before it named that report and was sealed."""
    stated = {key: value for key, value in document.items() if key not in ("digest", "signature")}
    files = {name: file for name, file in document["files"].items() if name != report}
    return sha256(canonical({**stated, "files": files}))


def software() -> dict[str, str]:
    """The versions that made the release."""
    return {
        "incrowd": __version__,
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in _SOFTWARE},
    }
