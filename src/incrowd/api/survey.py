"""What a page shows of a questionnaire, and of what a collector has taken in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from incrowd.survey import Questionnaire


@dataclass(frozen=True)
class Collected:
    """What a store holds: how much of it, and nothing else.

    Attributes:
        title: of the survey.
        records: how many came.
        expected: how many the questionnaire speaks of.
    """

    title: str
    records: int
    expected: int


def open_questionnaire(path: str | Path) -> Questionnaire:
    """A questionnaire from its file, checked."""
    from incrowd.survey import Questionnaire

    return Questionnaire.from_file(path)


def collected(store: str | Path) -> Collected:
    """How much has been collected in a store, which a collector may be filling at this moment."""
    from incrowd.survey.collector.store import Store

    opened = Store(str(store))
    try:
        asked = opened.questionnaire
        return Collected(asked.title, sum(opened.cells().values()), asked.records)
    finally:
        opened.close()
