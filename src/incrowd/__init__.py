"""incrowd publishes tables about people, and proves what it promises.

Scripts can rely on the names below, and on those of the modules that docs/python.md lists; everything else may change.
They are imported when first used, so that ``import incrowd`` is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from incrowd._version import __version__

if TYPE_CHECKING:
    from incrowd.api import (
        advise,
        audit,
        choose_privately,
        combine,
        compare,
        draft_policy,
        estimate,
        frontier,
        make_keys,
        make_questionnaire,
        plan_amplify,
        plan_crowd,
        plan_pram,
        plan_sample,
        plan_views,
        policy_levels,
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
    from incrowd.releases.stream import StreamSampler

# Where a name is defined, if not in the api.
_HOMES = {
    "Audit": "incrowd.auditing.audit",
    "GuaranteeError": "incrowd.core.errors",
    "IncrowdError": "incrowd.core.errors",
    "InputError": "incrowd.core.errors",
    "Policy": "incrowd.policy",
    "Release": "incrowd.releases.release",
    "StreamSampler": "incrowd.releases.stream",
}

__all__ = [
    "Audit",
    "GuaranteeError",
    "IncrowdError",
    "InputError",
    "Policy",
    "Release",
    "StreamSampler",
    "__version__",
    "advise",
    "audit",
    "choose_privately",
    "combine",
    "compare",
    "draft_policy",
    "estimate",
    "frontier",
    "make_keys",
    "make_questionnaire",
    "plan_amplify",
    "plan_crowd",
    "plan_pram",
    "plan_sample",
    "plan_views",
    "policy_levels",
    "release",
    "release_copies",
    "save_audit",
    "save_chart",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module(_HOMES.get(name, "incrowd.api")), name)
    raise AttributeError(f"module 'incrowd' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
