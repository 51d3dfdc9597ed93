"""incrowd publishes tables about people, and proves what it promises.

The names below are all there is to rely on. They are imported when first used, so that ``import incrowd`` is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from incrowd._version import __version__

if TYPE_CHECKING:
    from incrowd.api import (
        audit,
        draft_policy,
        estimate,
        frontier,
        plan_amplify,
        plan_crowd,
        plan_pram,
        plan_sample,
        release,
        release_copies,
        save_audit,
        save_chart,
        verify,
    )
    from incrowd.auditing.audit import Audit
    from incrowd.core.errors import GuaranteeError, IncrowdError, InputError
    from incrowd.policy import Policy
    from incrowd.releases.release import Release

_HOMES = {
    "Audit": "incrowd.auditing.audit",
    "GuaranteeError": "incrowd.core.errors",
    "IncrowdError": "incrowd.core.errors",
    "InputError": "incrowd.core.errors",
    "Policy": "incrowd.policy",
    "Release": "incrowd.releases.release",
    "audit": "incrowd.api",
    "draft_policy": "incrowd.api",
    "estimate": "incrowd.api",
    "frontier": "incrowd.api",
    "plan_amplify": "incrowd.api",
    "plan_crowd": "incrowd.api",
    "plan_pram": "incrowd.api",
    "plan_sample": "incrowd.api",
    "release": "incrowd.api",
    "release_copies": "incrowd.api",
    "save_audit": "incrowd.api",
    "save_chart": "incrowd.api",
    "verify": "incrowd.api",
}

__all__ = [
    "Audit",
    "GuaranteeError",
    "IncrowdError",
    "InputError",
    "Policy",
    "Release",
    "__version__",
    "audit",
    "draft_policy",
    "estimate",
    "frontier",
    "plan_amplify",
    "plan_crowd",
    "plan_pram",
    "plan_sample",
    "release",
    "release_copies",
    "save_audit",
    "save_chart",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'incrowd' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
