"""`incrowd advise` on Adult, recorded in docs/advice.json: what docs/choosing.md shows.

    python docs/advice.py

Nine columns as one sampled crowd, whose levels are chosen privately, at ε = 2 and δ = 10⁻⁶.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from incrowd import api
from incrowd.comparison.advice import Advised, Alternative
from incrowd.policy import Policy

HERE = Path(__file__).resolve().parent
RECORDED = HERE / "advice.json"
COLUMNS = (
    "sex",
    "age",
    "race",
    "marital-status",
    "education",
    "native-country",
    "workclass",
    "occupation",
    "salary-class",
)
RELEASE = "release: {mechanism: sampled_crowd, epsilon: 2, delta: 1e-6, selection_epsilon: 0.5}"


def policy() -> Policy:
    """Adult, with the hierarchies beside it."""
    given = os.environ.get("INCROWD_BENCHMARK_DATA")
    folder = (Path(given) if given else HERE.parents[1] / "shared" / "data") / "adult"
    lines = [
        f"  {name}: {{hierarchy: {{file: {folder}/adult_hierarchy_{name}.csv, delimiter: ';'}}}}" for name in COLUMNS
    ]
    head = f"incrowd: 1\nunlisted: drop\ndata: {{path: {folder}/adult.csv, delimiter: ';'}}\nattributes:\n"
    return Policy.from_text(head + "\n".join(lines) + f"\n{RELEASE}\n")


def recorded() -> Advised:
    """What was found."""
    content = json.loads(RECORDED.read_text(encoding="utf-8"))

    def made(one: dict[str, Any]) -> Alternative:
        return Alternative(**{**one, "scores": tuple(one["scores"])})

    others = tuple(map(made, content["alternatives"]))
    best = tuple(next(one for one in others if one.change == name) for name in content["best"])
    return Advised(
        made(content["current"]), others, best, tuple(content["control"]), tuple(content["columns"]), content["records"]
    )


def main() -> None:
    """Run it and keep it, without the lines for a policy and without promises in words."""
    found = api.advise(policy(), time_limit=3600)

    def kept(one: Alternative) -> dict[str, Any]:
        return asdict(one) | {"lines": "", "promise": "", "scores": [round(score, 4) for score in one.scores]}

    content = {
        "current": kept(found.current),
        "alternatives": [kept(one) for one in found.alternatives],
        "best": [one.change for one in found.best],
        "control": [round(score, 4) for score in found.control],
        "columns": list(found.columns),
        "records": found.records,
    }
    RECORDED.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
