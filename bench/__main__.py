"""`make bench`: every benchmark in one run, and what they found as a table, plots and one page, in bench/results/."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
import traceback

from bench import MODULES, results
from bench.measuring import Row, measured, show
from bench.recording import afterwards, keep, machine


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", metavar="A,B", help=f"some of: {', '.join(MODULES)}")
    parser.add_argument("--quick", action="store_true", help="small sizes and few turns, to see that all of it works")
    parser.add_argument("--record", action="store_true", help="keep the figures in bench/recorded.json")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(MODULES)
    if unknown := set(names) - set(MODULES):
        parser.error(f"there is no benchmark called {', '.join(sorted(unknown))}")
    found: dict[str, list[Row]] = {}
    seconds: dict[str, float] = {}
    failed = []
    made = machine(quick=options.quick)
    for name in names:
        print(f"\n{name}", flush=True)
        start = time.perf_counter()
        try:
            found[name] = show(measured(importlib.import_module(f"bench.{name}").run, options.quick))
        except Exception:  # noqa: BLE001 - the others go on
            traceback.print_exc()
            failed.append(name)
        seconds[name] = time.perf_counter() - start
    made = afterwards(made)
    made["seconds"] = {name: round(took, 1) for name, took in seconds.items()}
    results.write(found, made)
    if options.record:
        keep(found, made)
    print(f"\n{sum(seconds.values()):,.0f} s in all; open {results.FOLDER / 'results.html'} in a browser")
    missed = [f"{name}: {row.name}" for name, rows in found.items() for row in rows if row.missed]
    print(json.dumps({"targets missed": missed, "failed": failed}, ensure_ascii=False, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
