"""What each mechanism has, found by doing it; the table stands in docs/architecture.md.

A cell says what is there, or why it is not. Whoever adds a mechanism, or changes what one has, writes the table anew:
`python tests/conformance/mechanisms/test_matrix.py`.
"""

import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "architecture.md"
BEGIN, END = "<!-- what each mechanism has -->\n", "<!-- end -->\n"
COLUMNS = (
    "policy",
    "release",
    "certificate",
    "verify",
    "reports",
    "estimate",
    "ledger",
    "studio",
    "Spark",
    "Python",
    "docs",
)


def found(name, case, people, folder):
    """The cells of a mechanism, from a release that it made."""
    from incrowd import api
    from incrowd.core.errors import IncrowdError
    from incrowd.hierarchy import codings
    from incrowd.mechanisms.promises import Uncomposable
    from incrowd.mechanisms.registry import MECHANISMS
    from incrowd.releases.executors import require_possible

    mechanism = MECHANISMS[name]
    made = api.release(people, case.policy, folder=folder)
    table = mechanism.table_stem(mechanism.section_in(case.policy))
    beside = len(mechanism.beside_names(made.certified))
    settled = mechanism.settle(case.policy, codings(case.policy), 1)
    settled, _ = mechanism.prepare(settled, counted(people, case.policy), lambda *_: None)
    spent = mechanism.spending(settled)
    try:
        api.estimate(folder, ["sex"])
        estimate = "counts with errors"
    except IncrowdError as error:
        estimate = error.message
    try:
        require_possible(case.policy, folder, 1, rehearse=False)
        spark = "counts, redraws, writes"
    except IncrowdError as error:
        spark = f"counts; {error.message}"
    pages = (PAGE.parent / "policy.md").read_text(encoding="utf-8")
    proof = Path(sys.modules[type(mechanism).__module__].__file__).with_name("proof.md")
    return {
        "policy": f"`mechanism: {name}`",
        "release": " and ".join([*(["a table"] if table else []), *(["files beside it"] if beside else [])]),
        "certificate": f"`{mechanism.certificate.__name__}`",
        "verify": "promise, labels and table" if api.verify(folder).valid else "",
        "reports": " and ".join(
            [*(["public"] if made.report else []), *(["internal"] if "report.html" in made.internal else [])]
        ),
        "estimate": estimate,
        "ledger": f"listed, not added up: {spent.notion}" if isinstance(spent, Uncomposable) else "adds up",
        "studio": "a form: " + ", ".join(f"`{field.key}`" for field in mechanism.form),
        "Spark": spark,
        "Python": "`release`, `verify`, `estimate`",
        "docs": f"[policy](policy.md#mechanism-{name}){', `proof.md`' if proof.is_file() else ''}"
        if f"### `mechanism: {name}`" in pages
        else "",
    }


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


def matrix(cases, people):
    """The table, a column for each mechanism."""
    with tempfile.TemporaryDirectory() as scratch:
        cells = {name: found(name, case, people, Path(scratch) / name) for name, case in cases.items()}
    lines = [f"| | {' | '.join(f'`{name}`' for name in cells)} |", f"|---|{'---|' * len(cells)}"]
    lines += [f"| {row} | {' | '.join(cells[name][row] for name in cells)} |" for row in COLUMNS]
    return cells, "\n".join(lines) + "\n"


def test_the_page_says_what_each_mechanism_has(people):
    from conformance_mechanisms import CASES

    from incrowd.mechanisms.registry import MECHANISMS

    assert set(CASES) == set(MECHANISMS)
    cells, table = matrix({name: CASES[name] for name in MECHANISMS}, people)
    assert all(cells[name][row] for name in cells for row in COLUMNS)
    assert BEGIN + table + END in PAGE.read_text(encoding="utf-8")


def main():
    sys.path.insert(0, str(Path(__file__).parent))
    import conftest
    from incrowd.mechanisms.registry import MECHANISMS

    _, table = matrix({name: conftest.CASES[name] for name in MECHANISMS}, conftest.make_people())
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    PAGE.write_text(before + BEGIN + table + END + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
