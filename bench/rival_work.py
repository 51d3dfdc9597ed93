"""What the other libraries do, in a process and an environment of their own.

Reads one request a line, as JSON, and answers each with one line: the seconds that the library itself took, and what
it found. Imports and the reading of tables are not counted. Knows nothing of incrowd.
"""

from __future__ import annotations

import contextlib
import copy
import json
import sys
import time
import traceback
import warnings
from functools import cache

import numpy as np
import pandas as pd


@cache
def table(path: str) -> pd.DataFrame:
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def versions() -> dict:
    from importlib.metadata import version

    return {name: version(name) for name in ("pycanon", "anjana", "anonypy", "pandas", "numpy")}


def measures(path: str, quasi: list, sensitive: str, names: list) -> tuple:
    """pycanon's measures of a table."""
    from pycanon import anonymity

    known = {
        "k": lambda d: anonymity.k_anonymity(d, quasi),
        "l": lambda d: anonymity.l_diversity(d, quasi, [sensitive]),
        "entropy l": lambda d: anonymity.entropy_l_diversity(d, quasi, [sensitive]),
        "alpha": lambda d: anonymity.alpha_k_anonymity(d, quasi, [sensitive])[0],
        "t": lambda d: anonymity.t_closeness(d, quasi, [sensitive]),
        "beta": lambda d: anonymity.basic_beta_likeness(d, quasi, [sensitive]),
    }
    data = table(path)
    return lambda: {name: float(known[name](data)) for name in names}


def anjana(path: str, quasi: list, hierarchies: dict, task: str, suppression: float, **arguments: object) -> tuple:
    """anjana's table, and what it left out."""
    from anjana import anonymity

    levels = {name: {int(n): np.array(v) for n, v in tree.items()} for name, tree in hierarchies.items()}
    original = table(path)
    trees, data = copy.deepcopy(levels), original.copy()

    def make() -> pd.DataFrame:
        return getattr(anonymity, task)(
            data, [], list(quasi), supp_level=100 * suppression, hierarchies=trees, **arguments
        )

    return make


def anonypy(path: str, quasi: list, numbers: list, sensitive: str, k: int) -> tuple:
    """anonypy's Mondrian: its groups."""
    import anonypy

    data = table(path).copy()
    for name in data.columns:
        data[name] = data[name].astype(int) if name in numbers else data[name].astype("category")
    return lambda: pd.DataFrame(anonypy.Preserver(data, quasi, sensitive).anonymize_k_anonymity(k=k))


def saved(made: pd.DataFrame, path: str) -> dict:
    """A table as it was made, written where it was asked for, one line a record."""
    if "count" in made.columns:
        made = made.loc[made.index.repeat(made["count"])].drop(columns="count")
    made.drop(columns="index", errors="ignore").to_csv(path, index=False)
    return {"records": len(made)}


def answer(request: dict) -> dict:
    work, save_as = request.pop("work"), request.pop("save_as", None)
    if work == "versions":
        return versions()
    prepared = {"measures": measures, "anjana": anjana, "anonypy": anonypy}[work](**request)
    busy, start = time.process_time(), time.perf_counter()
    result = prepared()
    took = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - busy}
    if isinstance(result, pd.DataFrame):
        result = saved(result, save_as) if save_as else {}
    return {**took, "result": result}


def main() -> None:
    answers = sys.stdout
    warnings.simplefilter("ignore")
    with contextlib.redirect_stdout(sys.stderr):
        for line in sys.stdin:
            try:
                found = answer(json.loads(line))
            except Exception:  # noqa: BLE001 - who asked says what happened
                found = {"error": traceback.format_exc()}
            print(json.dumps(found), file=answers, flush=True)


if __name__ == "__main__":
    main()
