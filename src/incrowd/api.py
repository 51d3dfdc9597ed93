"""What incrowd does, in one place: the command line and the studio call these functions and nothing below them."""

from __future__ import annotations

from pathlib import Path

from incrowd.errors import ParameterError
from incrowd.plans import (
    Amplification,
    CentralPromise,
    CrowdPlan,
    FrontierPoint,
    PramPlan,
    Relation,
    frontier,
    plan_amplify,
    plan_crowd,
    plan_pram,
)

__all__ = [
    "Amplification",
    "CentralPromise",
    "CrowdPlan",
    "FrontierPoint",
    "PramPlan",
    "Relation",
    "frontier",
    "plan_amplify",
    "plan_crowd",
    "plan_pram",
    "save_chart",
]


def save_chart(plan: CrowdPlan | Amplification | PramPlan, path: str | Path) -> Path:
    """Draw a plan's trade-off as an SVG file."""
    from incrowd.files import write_whole
    from incrowd.reports import plan_charts

    if Path(path).suffix.lower() != ".svg":
        raise ParameterError(
            f"Charts are written as SVG; {Path(path).name} does not end in .svg.",
            code="parameter-range",
            remedy="Name the file something.svg; every browser opens it.",
        )
    return write_whole(path, plan_charts.draw(plan).encode())
