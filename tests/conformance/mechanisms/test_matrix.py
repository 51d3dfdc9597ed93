"""What each mechanism has, found by doing it; the table stands in docs/architecture.md.

A cell says what is there, or why it is not. Whoever adds a mechanism, or changes what one has, writes the table anew:
`python tests/conformance/mechanisms/test_matrix.py`.
"""

import re
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "architecture.md"
BEGIN, END = "<!-- what each mechanism has -->\n", "<!-- end -->\n"
ROWS = (
    "policy",
    "release",
    "certificate",
    "verify",
    "public report",
    "internal report",
    "estimate",
    "ledger",
    "studio",
    "Spark",
    "Python",
    "audit",
    "docs",
)
WITHOUT_LEVELS = ("    level: 1\n", "")
LEDGER = "ledger: {path: survey.ledger, dataset: survey, epsilon: 1, delta: 1e-3}"
VARIANTS = {
    "sampled_crowd, chosen": ("{mechanism: sampled_crowd, epsilon: 9, delta: 1e-4, selection_epsilon: 6}", True),
    "sampled_crowd, tree": ("{mechanism: sampled_crowd, epsilon: 2, delta: 1e-4, recoding: tree}", True),
    "generalization, local": ("{mechanism: generalization, require: [{k: 5}], recoding: local}", True),
    "generalization, adversary": (
        "{mechanism: generalization, adversaries: [{belief_ratio: 3, stubbornness: 50}]}",
        False,
    ),
    "pram, sampled": ("{mechanism: pram, rho: 0.5, delta: 1e-4, beta: 0.5}", False),
    "views, sampled": (
        f"{{mechanism: views, epsilon: 0.5, delta: 1e-4, by: noise, already_sampled: true, beta: 0.5}}\n{LEDGER}",
        True,
    ),
    "views, crowds": ("{mechanism: views, epsilon: 3, delta: 1e-4, by: crowd}", True),
}
"""Ways of a mechanism that differ in what is released: the section, and whether levels are left open."""


def policies(folder):
    """Every mechanism as the suite uses it, each followed by its variants, which find their files in a folder."""
    from conformance_mechanisms import ATTRIBUTES, CASES

    from incrowd.mechanisms.registry import MECHANISMS
    from incrowd.policy import Policy

    found = {}
    for name in MECHANISMS:
        found[name] = CASES[name].policy
        for variant, (release, free) in VARIANTS.items():
            if variant.split(", ")[0] == name:
                attributes = ATTRIBUTES.replace(*WITHOUT_LEVELS) if free else ATTRIBUTES
                found[variant] = Policy.from_text(f"{attributes}release: {release}\n", base=folder)
    return found


def found(policy, people, folder):
    """The cells of a mechanism, from a release that it made."""
    from incrowd import api
    from incrowd.hierarchy import codings
    from incrowd.mechanisms.promises import Uncomposable
    from incrowd.mechanisms.registry import MECHANISMS

    name = policy.release.mechanism
    mechanism = MECHANISMS[name]
    made = api.release(people, policy, folder=folder, new_ledger=policy.ledger is not None)
    # Which views there are is chosen at random.
    beside = sorted({re.sub(r"^(.*/).*", r"\1", name) for name in mechanism.beside_names(made.certified)})
    settled = mechanism.settle(policy, codings(policy), 1)
    settled, _ = mechanism.prepare(settled, counted(people, policy), lambda *_: None)
    spent = mechanism.spending(settled)
    pages = (PAGE.parent / "policy.md").read_text(encoding="utf-8")
    proof = Path(sys.modules[type(mechanism).__module__].__file__).with_name("proof.md")
    verified = api.verify(folder)
    said = policy.release.model_dump(exclude_defaults=True, exclude={"mechanism", "epsilon", "delta"})
    return {
        "policy": f"`mechanism: {name}`" + (f" with {_keys(said)}" if said else ""),
        "release": " and ".join(
            [*(["a table"] if made.table is not None else []), *([_keys(beside)] if beside else [])]
        ),
        "certificate": _keys(sorted(set(made.certificate["mechanism"]) - {"name", "levels", "levels_chosen"})),
        "verify": f"valid; {len(mechanism.claimed)} things on the publisher's word" if verified.valid else "",
        "public report": _sections(made.report),
        "internal report": _sections(made.internal["report.html"]),
        "estimate": estimated(folder),
        "ledger": f"listed, not added up: {spent.notion}"
        if isinstance(spent, Uncomposable)
        else f"adds up as `{type(spent).__name__}`",
        "studio": "a form: " + _keys(field.key for field in mechanism.form),
        "Spark": on_spark(policy, folder),
        "Python": f"`{type(made).__name__}`, `{type(api.estimate(folder, ['sex'])).__name__}`",
        "audit": audited(made),
        "docs": f"[policy](policy.md#mechanism-{name}){', `proof.md`' if proof.is_file() else ''}"
        if f"### `mechanism: {name}`" in pages
        else "",
    }


def _keys(names):
    return ", ".join(f"`{name}`" for name in names)


def _sections(page):
    text = page.decode() if isinstance(page, bytes) else page
    return ", ".join(re.findall(r'<section><h2 id="([\w-]+)"', text))


def estimated(folder):
    """What there is of counts of one column: estimates, errors, intervals; and whether of means, too."""
    from incrowd import api
    from incrowd.core.errors import IncrowdError

    rows = [row for name in ("sex", "job", "age") for row in api.estimate(folder, [name]).rows]
    has = ["counts"]
    has += ["standard errors"] if any(row.standard_error for row in rows) else []
    has += ["intervals"] if any(row.low is not None and row.low != row.high for row in rows) else ["exact"]
    try:
        api.estimate(folder, ["sex"], mean="age")
        has.append("means")
    except IncrowdError as error:
        has.append(f"no means: {error.message}")
    return ", ".join(has)


def on_spark(policy, folder):
    """Whether executors draw it, or why they only count."""
    from incrowd.core.errors import IncrowdError
    from incrowd.releases.executors import require_possible

    try:
        require_possible(policy, folder, 1, rehearse=False)
    except IncrowdError as error:
        return f"counts; {error.message}"
    return "counts, redraws, writes"


def audited(made):
    """Whether an audit of the published table finds what was promised of its groups, or why it cannot."""
    from incrowd import api

    table = made.to_pandas()
    promised, mechanism = made.certificate["promise"], made.certificate["mechanism"]
    audit = api.audit(table, quasi=["age", "sex"], sensitive=["job"], adversaries=["II sigma=50"])
    if promised.get("adversaries"):
        limit = promised["adversaries"][0]["belief_ratio"]
        return "finds the belief ratio promised" if max(audit.belief_ratio.values()) <= limit else ""
    if mechanism["name"] == "generalization":
        return "finds the k required" if audit.k >= 5 else ""
    if mechanism["name"] == "sampled_crowd":
        return (
            "finds the k of the certificate" if api.audit(table, quasi=list(table.columns)).k >= mechanism["k"] else ""
        )
    return "no group is promised a size: the promise is about how the table was drawn"


def counted(people, policy):
    """The table as a mechanism sees it."""
    import numpy as np

    from incrowd.hierarchy import codings
    from incrowd.histogram import Column, Histogram

    columns = []
    for attribute in codings(policy):
        labels = attribute.hierarchy.levels[0].labels
        place = {label: code for code, label in enumerate(labels)}
        codes = np.array([place[str(value)] for value in people[attribute.name]])
        columns.append(Column(attribute.name, labels, codes))
    return Histogram.of(columns)


def matrix(people):
    """The table, a column for each mechanism and its variants."""
    with tempfile.TemporaryDirectory() as scratch:
        cells = {
            name: found(policy, people, Path(scratch) / str(number))
            for number, (name, policy) in enumerate(policies(Path(scratch)).items())
        }
    lines = [f"| | {' | '.join(f'`{name}`' for name in cells)} |", f"|---|{'---|' * len(cells)}"]
    lines += [f"| {row} | {' | '.join(cells[name][row] for name in cells)} |" for row in ROWS]
    return cells, "\n".join(lines) + "\n"


def test_the_page_says_what_each_mechanism_has(people):
    from conformance_mechanisms import CASES

    from incrowd.mechanisms.registry import MECHANISMS

    assert set(CASES) == set(MECHANISMS)
    cells, table = matrix(people)
    assert all(cells[name][row] for name in cells for row in ROWS)
    for row in ROWS:
        assert len({cells[name][row] for name in cells}) > 1, f"{row} says the same of all"
    assert BEGIN + table + END in PAGE.read_text(encoding="utf-8")


def main():
    sys.path.insert(0, str(Path(__file__).parent))
    import conftest

    _, table = matrix(conftest.make_people())
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    PAGE.write_text(before + BEGIN + table + END + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
