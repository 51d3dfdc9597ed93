"""The examples that a page offers to somebody who has no table at hand."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from pathlib import Path

from incrowd.core.progress import Progress
from incrowd.papers.examples.survey import write_survey

_CENSUS_ROWS, _PATIENTS = 20_000, 6_000


@dataclass(frozen=True)
class Example:
    """An example, in words.

    Attributes:
        title: what it is.
        about: what is in it, and what it shows.
        has_table: whether there is a table; else respondents are asked, and randomise their own answers.
        endings: what its files are called, behind the name that they share.
    """

    title: str
    about: str
    has_table: bool
    endings: tuple[str, ...]


EXAMPLES = {
    "census": Example(
        "A census",
        f"{_CENSUS_ROWS:,} people of an imaginary country, one in a row: age, work, home, an illness.",
        True,
        (".csv", ".yaml"),
    ),
    "hospital": Example(
        "A hospital",
        f"The visits of {_PATIENTS:,} patients. Most have several, and the promise is made to patients, not to rows.",
        True,
        (".csv", ".yaml"),
    ),
    "survey": Example(
        "A survey",
        "Four questions, one of them delicate. Respondents randomise their own answers; nobody has the true table.",
        False,
        (".yaml", ".texts.yaml"),
    ),
}


def make_example(name: str, folder: str | Path, progress: Progress | None = None) -> list[Path]:
    """Write an example into a folder: its files, the table or else the policy first. What is there is used again."""
    from incrowd.papers.examples.census import write_census
    from incrowd.papers.examples.visits import write_visits

    endings = EXAMPLES[name].endings
    for number in count(1):
        stem = f"example-{name}" + (f"-{number}" if number > 1 else "")
        paths = [Path(folder) / f"{stem}{ending}" for ending in endings]
        there = [path.is_file() for path in paths]
        if all(there):
            return paths
        if not any(there):
            break
    if name == "census":
        tell = progress or (lambda _what, _part: None)
        return write_census(paths[0], _CENSUS_ROWS, lambda rows: tell("writing", rows / _CENSUS_ROWS))
    return write_visits(paths[0], _PATIENTS) if name == "hospital" else write_survey(paths[0])
