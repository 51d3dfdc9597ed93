"""Our search, checks and audit against pycanon, anjana and anonypy, on Adult or, where it is absent, a census.

The three are installed from the registry into an environment of their own, where they measure themselves, imports and
reading not counted. Ours start from the same: rows of text in a pandas table in memory, and, where something is
recoded, the labels of each level of the hierarchies in memory; and they end with the same, a measure or a recoded table
of as many rows. So hierarchies are built and rows are counted within our time. The audit starts from a file. anjana and
anonypy, which take long, are measured once, as their tables are made. Results are compared:

- pycanon's measures must be ours, to rounding. (Its entropy ℓ is cut down to a whole number. Its δ-disclosure passes
  over values that a group does not have, for which the definition gives infinity; its enhanced β and its c of
  recursive diversity follow other definitions, too: these are left out.)
- what our search finds must keep, by pycanon's measures, what anjana was asked for, leave out no more records than
  anjana did, and lose no more than anjana's table does.
- our local recoding and anonypy's must both be k-anonymous by pycanon's measure. They lose different amounts, because
  they are not the same: anonypy shows of each group exactly the sets and ranges of values that occur in it, ours shows
  nodes of the hierarchies, which tell nobody who is missing. So their times are not compared.
"""

from __future__ import annotations

import json
import subprocess
import venv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.measuring import Row, Spent, in_turns, main, seconds
from bench.tables import census, load, new_folder, table_folder
from incrowd import api
from incrowd.domain import Categories, Coding
from incrowd.hierarchy import CodedAttribute, Hierarchy
from incrowd.hierarchy.tree import assemble, in_order
from incrowd.histogram import Histogram
from incrowd.recoding.boxes import Sets, Splits
from incrowd.recoding.demands import Demand
from incrowd.recoding.mondrian import Local, mondrian
from incrowd.recoding.search import Found, generalize, search
from incrowd.theory import requirements as needs
from incrowd.theory import syntactic

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

HERE = Path(__file__).parent
PLACE = HERE / ".rivals"
K = 5


class Rivals:
    """The process in which the other libraries work."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [PLACE / "bin" / "python", HERE / "rival_work.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, work: str, **arguments: Any) -> dict[str, Any]:
        """One answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps({"work": work, **arguments}), file=self._process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(f"{work} failed in the rivals' process:\n{answer['error']}")
        return answer

    def took(self, work: str, **arguments: Any) -> Spent:
        """What the work takes, as they measure it."""
        return measured(self.ask(work, **arguments))

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def measured(answer: Mapping[str, Any]) -> Spent:
    """What an answer took."""
    return Spent(answer["seconds"], answer["cpu"])


def installed() -> str | None:
    """Makes the environment if it is not there; why it could not be made, if so."""
    wanted = HERE / "rivals.txt"
    mark = PLACE / "installed.txt"
    if mark.is_file() and mark.read_text(encoding="utf-8") == wanted.read_text(encoding="utf-8"):
        return None
    try:
        venv.create(PLACE, with_pip=True, clear=True)
        pip = [PLACE / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-r", wanted], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        return f"the other libraries could not be installed ({type(error).__name__})"
    mark.write_text(wanted.read_text(encoding="utf-8"), encoding="utf-8")
    return None


def installed_versions() -> dict[str, str]:
    """Of the libraries that were compared with, by name; none if they are not installed."""
    mark = PLACE / "installed.txt"
    lines = mark.read_text(encoding="utf-8").split() if mark.is_file() else []
    pinned = dict(line.split("==") for line in lines if "==" in line)
    return {name: version for name, version in pinned.items() if name not in {"numpy", "pandas"}}


@dataclass(frozen=True)
class People:
    """A table with its hierarchies, as we and as the others read it."""

    name: str
    table: Histogram
    trees: Mapping[str, Hierarchy]
    sensitive: str
    numbers: Sequence[str]

    @property
    def quasi(self) -> list[str]:
        """All columns but the sensitive one."""
        return [name for name in self.trees if name != self.sensitive]

    @property
    def hierarchies(self) -> dict[str, Hierarchy]:
        """Of the quasi-identifiers."""
        return {name: self.trees[name] for name in self.quasi}

    @cached_property
    def file(self) -> str:
        """The table as a CSV file."""
        return written(self.table)

    @cached_property
    def rows(self) -> pd.DataFrame:
        """What is in the file, in memory, every value a text: what we and the others start from."""
        return read(self.file)

    @cached_property
    def levels(self) -> dict[str, dict[int, list[str]]]:
        """For each quasi-identifier and level, the label of every value, as it stands in a file."""
        return {
            name: {n: [recode.labels[code] or "" for code in recode.to] for n, recode in enumerate(tree.levels)}
            for name, tree in self.hierarchies.items()
        }

    def counted(self) -> tuple[Histogram, dict[str, Hierarchy]]:
        """The rows counted, and hierarchies built from the labels of their levels, as the others are given them."""
        trees = {}
        for name, levels in self.levels.items():
            groupings = [in_order(*codes(labels)) for level, labels in levels.items() if level]
            trees[name] = assemble(Coding(name, Categories(tuple(levels[0]))), groupings)
        given = {name: tree.levels[0].labels for name, tree in trees.items()}
        return Histogram.from_pandas(self.rows, labels=given), trees

    def loss(self, file: str) -> float:
        """The mean of (values covered − 1)/(domain − 1) over all records and columns, those left out counting 1."""
        made = read(file)
        lost = 0.0
        for name, tree in self.hierarchies.items():
            values = set(made[name])
            level = next(
                n for n, recode in enumerate(tree.levels) if values <= {label or "" for label in recode.labels}
            )
            covered = tree.covered(level)
            labels = [label or "" for label in tree.levels[level].labels]
            width = dict(zip(labels, (covered - 1) / max(covered.sum() - 1, 1), strict=True))
            lost += float(made[name].map(width).sum()) + (self.table.total - len(made))
        return lost / (self.table.total * len(self.hierarchies))


def read(file: str) -> pd.DataFrame:
    """The rows of a file, every value a text."""
    import pandas as pd

    return pd.read_csv(file, dtype=str, keep_default_na=False)


def codes(labels: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """For each value its group, and the groups' names."""
    names = list(dict.fromkeys(labels))
    numbers = {name: number for number, name in enumerate(names)}
    return np.array([numbers[label] for label in labels]), names


def written(table: Histogram) -> str:
    """A histogram as a CSV file, one line a record."""
    path = new_folder() / "table.csv"
    records = table.to_pandas()
    if "count" in records.columns:
        records = records.loc[records.index.repeat(records["count"])].drop(columns="count")
    assert len(records) == table.total
    records.to_csv(path, index=False)
    return str(path)


def people(quick: bool) -> People:
    """Adult, or a census of as many people."""
    folder = table_folder("adult")
    if folder is not None:
        table, attributes = load("adult", folder)
        return People("Adult", table, {a.name: a.hierarchy for a in attributes}, "occupation", ["age"])
    table, attributes = census(3_000 if quick else 30_000)
    trees = {a.name: a.hierarchy for a in attributes if a.name != "income"}  # whose values have commas in them
    return People("census", table.project(list(trees)), trees, "condition", ["age"])


def run(quick: bool = False) -> Iterator[Row]:
    """Ours against theirs."""
    problem = installed()
    if problem is not None:
        yield Row("search, k", "search, checks and audit against other libraries", note=problem)
        return
    rivals = Rivals()
    try:
        who = people(quick)
        yield from _measures(who, rivals, 1 if quick else 3)
        yield from _searches(who, rivals)
        yield from _local(who, rivals)
    finally:
        rivals.close()


def _measures(who: People, rivals: Rivals, repeats: int) -> Iterator[Row]:
    demand = [Demand(needs.KAnonymity(K))]
    found = search(who.table, who.hierarchies, demand, suppression=0.05)
    made = generalize(who.table, who.hierarchies, found.levels, demand, suppression=0.05).published
    file = written(made)
    names = ["k", "l", "entropy l", "alpha", "t", "beta"]
    asked = {"path": file, "quasi": who.quasi, "sensitive": who.sensitive}
    theirs = rivals.ask("measures", names=names, **asked)["result"]
    audit = api.audit(file, who.quasi, who.sensitive)
    rows = read(file)
    counts = matrix(Histogram.from_pandas(rows), who)
    checks: dict[str, Callable[[np.ndarray], Any]] = {
        "k": syntactic.k_anonymity,
        "l": syntactic.distinct_l_diversity,
        "entropy l": syntactic.entropy_l_diversity,
        "alpha": syntactic.largest_share,
        "t": syntactic.t_closeness,
        "beta": syntactic.beta_likeness,
    }
    ours = {name: check(counts).value for name, check in checks.items()}
    ours["entropy l"] = float(int(ours["entropy l"] + 1e-9))
    for name in names:
        assert abs(ours[name] - theirs[name]) <= 1e-9 * max(1.0, abs(theirs[name])), (name, ours[name], theirs[name])
    assert (audit.k, audit.l_diversity) == (theirs["k"], theirs["l"])
    groups = f"{who.name}, {audit.groups:,} groups"
    note = "both from rows in memory; ours counts them first"
    for key, shown in {"k": "k-anonymity", "l": "ℓ-diversity", "t": "t-closeness", "beta": "β-likeness"}.items():
        took = in_turns(
            {
                "ours": lambda k=key: checks[k](matrix(Histogram.from_pandas(rows), who)),
                "theirs": lambda k=key: rivals.took("measures", names=[k], **asked),
            },
            repeats,
        )
        yield Row(f"check, {key}", f"check of {shown}, {groups}", took["ours"], "pycanon", took["theirs"], note=note)
    took = in_turns(
        {
            "ours": lambda: api.audit(file, who.quasi, who.sensitive),
            "theirs": lambda: rivals.took("measures", names=names, **asked),
        },
        repeats,
    )
    note = "ours also reads the file, and gives belief ratios, risks and minimal unique combinations"
    yield Row("audit", f"whole audit, {groups}", took["ours"], "six measures of pycanon", took["theirs"], note=note)


def matrix(table: Histogram, who: People) -> np.ndarray:
    """Groups × sensitive values."""
    ordered = table.project([*who.quasi, who.sensitive])
    codes = np.stack([ordered[name].codes.astype(np.int64) for name in who.quasi])
    group = np.cumsum(np.concatenate([[False], (codes[:, 1:] != codes[:, :-1]).any(axis=0)]))
    column = ordered[who.sensitive]
    occurring = np.unique(column.codes)
    counts = np.zeros((int(group[-1]) + 1, len(occurring)), dtype=np.int64)
    np.add.at(counts, (group, np.searchsorted(occurring, column.codes)), ordered.counts)
    return counts


def _searches(who: People, rivals: Rivals) -> Iterator[Row]:
    """The same demands, with up to 5% left out. anjana, which takes long, is measured once, as its table is made."""
    k = Demand(needs.KAnonymity(K))
    cases: dict[str, tuple[str, dict[str, Any], list[Demand], list[str]]] = {
        "k": ("k_anonymity", {"k": K}, [k], ["k"]),
        "l": ("l_diversity", {"k": K, "l_div": 3}, [k, Demand(needs.DistinctDiversity(3), who.sensitive)], ["k", "l"]),
        "t": ("t_closeness", {"k": K, "t": 0.5}, [k, Demand(needs.TCloseness(0.5), who.sensitive)], ["k", "t"]),
    }
    for key, (work, arguments, demands, names) in cases.items():
        if "l_div" in arguments or "t" in arguments:
            arguments["sens_att"] = who.sensitive
        asked = {"path": who.file, "quasi": who.quasi, "hierarchies": who.levels, "suppression": 0.05, **arguments}
        made = str(new_folder() / "anjana.csv")
        theirs = rivals.ask("anjana", task=work, save_as=made, **asked)
        left_out = who.table.total - theirs["result"]["records"]
        most = (left_out + 0.5) / who.table.total
        found, recoded = recode(who, demands, most)
        assert found.suppressed <= left_out
        assert recoded.num_rows == who.table.total - found.suppressed
        ours = written(Histogram.from_arrow(recoded))
        kept = rivals.ask("measures", path=ours, quasi=who.quasi, sensitive=who.sensitive, names=names)["result"]
        assert kept["k"] >= K, kept
        assert kept.get("l", 3) >= 3, kept
        assert kept.get("t", 0.0) <= 0.5 + 1e-12, kept
        theirs_lost = who.loss(made)
        ours_lost = who.loss(ours)
        assert abs(ours_lost - found.cost) < 1e-9
        assert ours_lost <= theirs_lost + 1e-12, (ours_lost, theirs_lost)
        took = in_turns({"ours": partial(recode, who, demands, most)}, 3)["ours"]
        shown = {"k": f"k = {K}", "l": f"k = {K}, ℓ = 3", "t": f"k = {K}, t = 0.5"}[key]
        figures = {
            "our loss": ours_lost,
            "its loss": theirs_lost,
            "our loss with up to 5% left out": recode(who, demands, 0.05)[0].cost,
            "records we leave out": found.suppressed,
            "it leaves out": left_out,
        }
        name = f"recoding, {who.name}, {shown}, {left_out / who.table.total:.1%} left out"
        note = "both from rows in memory to the recoded rows; anjana once, cold"
        yield Row(f"search, {key}", name, took, "anjana", measured(theirs), figures=figures, note=note)


def recode(who: People, demands: Sequence[Demand], most: float) -> tuple[Found, pa.Table]:
    """The whole job: hierarchies, counting, the search, and the rows as they would be published."""
    table, trees = who.counted()
    found = search(table, trees, demands, suppression=most)
    return found, generalize(table, trees, found.levels, demands, suppression=most).published.expand()


def _local(who: People, rivals: Rivals) -> Iterator[Row]:
    k = 50
    made = str(new_folder() / "anonypy.csv")
    asked = {"path": who.file, "quasi": who.quasi, "numbers": who.numbers, "sensitive": who.sensitive, "k": k}
    theirs = rivals.ask("anonypy", save_as=made, **asked)
    demands = [Demand(needs.KAnonymity(k))]
    lost = spread(who, made)
    shown = {
        "hierarchy": "ours shows nodes of the hierarchies",
        "binary": "ours shows ranges and unions, whether or not all of their values occur",
    }
    for splits, ours in shown.items():
        whole = partial(recode_locally, who, demands, splits)
        local = whole()
        for file in (made, written(local.published)):
            asked_of = {"path": file, "quasi": who.quasi, "sensitive": who.sensitive, "names": ["k"]}
            kept = rivals.ask("measures", **asked_of)["result"]["k"]
            assert kept >= k, kept
        took = in_turns({"ours": lambda whole=whole: whole().published.expand()}, 3)["ours"]
        figures = {
            "our loss": local.loss,
            "its loss": lost,
            "our groups": local.groups,
            "its seconds": theirs["seconds"],
        }
        note = (
            f"not the same outcome, so no ratio: anonypy ({seconds(theirs['seconds'])}, once, cold) shows exactly the "
            f"sets and ranges of values that occur in a group, {ours}"
        )
        yield Row(
            f"Mondrian, {splits}", f"local recoding, {splits}, {who.name}, k = {k}", took, figures=figures, note=note
        )


def recode_locally(who: People, demands: Sequence[Demand], splits: Splits) -> Local:
    """Counting, and the local recoding."""
    table, trees = who.counted()
    columns = []
    for name, tree in trees.items():
        coding = Coding(name, Categories(tree.levels[0].labels))
        columns.append(Sets(CodedAttribute(name, coding, tree), splits, name in who.numbers, table.tallies[name]))
    return mondrian(table, columns, demands)


def spread(who: People, file: str) -> float:
    """What anonypy's table loses, by the same measure: its groups show ranges of numbers and sets of texts."""
    made = read(file)
    lost = 0.0
    for name in who.quasi:
        domain = len(who.trees[name].levels[0].labels)
        shown = made[name].str.strip("[]'")
        if name in who.numbers:
            ends = shown.str.partition("-")[[0, 2]]
            low, high = ends[0].astype(float), ends[2].where(ends[2] != "", ends[0]).astype(float)
            covered = high - low
        else:
            covered = shown.str.count(",")
        lost += float(covered.sum()) / max(domain - 1, 1)
    return lost / (len(made) * len(who.quasi))


if __name__ == "__main__":
    main(run)
