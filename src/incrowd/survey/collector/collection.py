"""A closed collection as a table: the same release as a curator's, with the promise that its records keep.

What a questionnaire promised rests on the expected number of records. What the table promises rests on the number that
came: the retentions are fixed, so only k and the central (ε,δ) change with it, and both are computed anew.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from incrowd.core.errors import DataError
from incrowd.hierarchy import codings
from incrowd.histogram import Column, Histogram
from incrowd.mechanisms.pram import report as pram_report
from incrowd.mechanisms.pram.draw import collected
from incrowd.mechanisms.registry import MECHANISMS
from incrowd.policy import Policy
from incrowd.releases.release import BY_RESPONDENTS, Release, certify, files_of
from incrowd.releases.verdict import public_block, verdict
from incrowd.reports.page import completed
from incrowd.survey import Question, Questionnaire
from incrowd.survey.collector.store import Store

LEAST_RECORDS = 2
QUESTIONNAIRE = "questionnaire.json"


class Respondents:
    """Where the bits came from, for a certificate. Nobody can check it from here; the certificate says so."""

    secure = True
    kind = BY_RESPONDENTS


def rehearse(questionnaire: Questionnaire) -> None:
    """Make the smallest release, of records that are all alike, and throw it away.

    Nobody should be asked for what cannot be published afterwards. More records only add to what is promised.

    Raises:
        IncrowdError: why it could not be published.
    """
    alike = (0,) * len(questionnaire.questions)
    release_of(tabulate({alike: LEAST_RECORDS}, questionnaire), questionnaire)


def close_and_count(store: Store, *, fewer: bool = False) -> Histogram:
    """Take no more records, and count those that came. The table is in the order of its codes: nothing else is left.

    What is refused is refused before the collection is closed; it goes on then.

    Args:
        store: where they are.
        fewer: go on although fewer came than the questionnaire's promise speaks of.

    Raises:
        DataError: fewer than two records came, and a single one is not hidden among others; or fewer than expected.
        GuaranteeError: nothing can be promised about the table.
    """
    came = store.cells()
    records, expected = sum(came.values()), store.questionnaire.records
    if records < LEAST_RECORDS:
        raise DataError(
            f"Fewer than {LEAST_RECORDS} records were collected; a table of them hides nobody.",
            code="collection-empty",
            remedy="Wait for more. The collection is still open.",
        )
    if records < expected and not fewer:
        raise DataError(
            f"Fewer records were collected than the {expected:,} for which the questionnaire promises k and epsilon.",
            code="collection-small",
            remedy="Wait for more; the collection was not closed. Or publish with --fewer, which promises less.",
        )
    release_of(tabulate(came, store.questionnaire), store.questionnaire)  # what may still come only adds to a promise
    store.finish()
    return tabulate(store.cells(), store.questionnaire)


def release_of(table: Histogram, questionnaire: Questionnaire) -> Release:
    """The records as a release: certificate and report say that respondents have randomised them."""
    policy = policy_of(questionnaire)
    settings, made = collected(MECHANISMS["pram"].settle(policy, codings(policy), copies=1), table)
    judged = verdict(policy, made.published, made.statement)
    page = pram_report.public_report(policy, settings, made.published, made.statement, void=None)
    published = made.published
    certified = certify(
        *(policy, made.statement, published.columns, None, Respondents(), files_of(policy, made.publication)),
        report=partial(completed, page, public_block(judged)),
        void=None,
    )
    return Release(
        load=lambda: published,
        certified=certified.certificate,
        policy=policy,
        report=certified.report,
        internal={QUESTIONNAIRE: questionnaire.to_bytes()},
        verdict=judged,
    )


def tabulate(cells: dict[tuple[int, ...], int], questionnaire: Questionnaire) -> Histogram:
    """Counted codes as a histogram with the questionnaire's values as labels."""
    codes = np.array(list(cells), dtype=np.int64).reshape(len(cells), len(questionnaire.questions))
    columns = [_column(q, codes[:, place]) for place, q in enumerate(questionnaire.questions)]
    return Histogram.of(columns, np.array(list(cells.values()), dtype=np.int64))


def _column(question: Question, codes: np.ndarray[Any, np.dtype[np.int64]]) -> Column:
    """A column as a policy's would be: a missing value is the last, wherever the questionnaire lists it."""
    order = sorted(range(len(question.values)), key=lambda code: question.values[code] is None)
    return Column(question.name, tuple(question.values[code] for code in order), np.argsort(order)[codes])


def policy_of(questionnaire: Questionnaire) -> Policy:
    """The policy by which a curator would have made the same table: its domains and its retentions."""
    content = {
        "incrowd": 1,
        "title": questionnaire.title,
        "attributes": {question.name: _attribute(question) for question in questionnaire.questions},
        "release": {
            "mechanism": "pram",
            "rho": {question.name: as_float(question) for question in questionnaire.questions},
            "delta": float(questionnaire.promise["central"]["delta"]),
        },
    }
    return Policy.from_dict(content)


def as_float(question: Question) -> float:
    """The retention as a floating-point number, rounded up: whoever promises for more keeps what is promised for less.

    Retentions that came from floating-point numbers, as those in a policy do, are exact.
    """
    rho = float(question.retention)
    return rho if rho >= question.retention else math.nextafter(rho, 1.0)


def _attribute(question: Question) -> dict[str, Any]:
    listed = [value for value in question.values if value is not None]
    return {"domain": listed, "missing": "keep"} if None in question.values else {"domain": listed}
