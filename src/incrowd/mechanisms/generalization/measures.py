"""By what the best table is chosen: the names in a policy, and how people say them.

How each is computed stands in `incrowd.recoding.measures`, by the same names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

MINIMISED: Mapping[str, str] = {
    "loss": "loss of information",
    "entropy": "loss of entropy",
    "discernibility": "discernibility",
    "class_size": "average group size",
    "divergence": "divergence from the table",
    "query_error": "error of counts",
}

if TYPE_CHECKING:
    Minimise = str
else:
    Minimise = Literal[tuple(MINIMISED)]
