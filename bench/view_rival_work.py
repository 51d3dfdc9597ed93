"""Runs in the environment of the other library: a table of codes in, a synthetic one out, and what that took.

    python view_rival_work.py METHOD EPSILON DELTA SEED TABLE.npz OUT.npz

METHOD is mst or aim, with the library's own settings, all work in one process.
"""

import json
import sys
import time
import warnings

import numpy as np
import pandas as pd
from dpmm.models.aim import AIMGM
from dpmm.models.mst import MSTGM


def main() -> None:
    method, epsilon, delta, seed, path, out = sys.argv[1:]
    warnings.simplefilter("ignore")
    given = np.load(path)
    names = [f"c{i}" for i in range(len(given["sizes"]))]
    domain = {name: int(size) for name, size in zip(names, given["sizes"], strict=True)}
    people = pd.DataFrame(given["codes"].astype(np.int64), columns=names)
    made = {"mst": MSTGM, "aim": AIMGM}[method](epsilon=float(epsilon), delta=float(delta), domain=domain, n_jobs=1)
    made.set_domain(domain)
    made.set_random_state(np.random.RandomState(int(seed)))
    busy, start = time.process_time(), time.perf_counter()
    made.fit(people)
    rows = made.generate(n_records=len(people))
    took = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - busy}
    np.savez(out, codes=rows[names].to_numpy())
    print(json.dumps(took))


if __name__ == "__main__":
    main()
