"""`make bench`: every benchmark in one run, each printing its own small table."""

from __future__ import annotations

import runpy

MODULES = ("planner", "thinning", "sampling_rate", "plain_sample", "counting", "adult_release", "lattice_search")

for name in MODULES:
    print(f"\n{name}", flush=True)
    runpy.run_module(f"bench.{name}", run_name="__main__")
