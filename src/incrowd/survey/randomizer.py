"""Draw the record that a respondent sends.

For each answer two things are drawn, always both, so that neither the time taken nor the bits used tell which of them
counted: 64 bits U, and a uniform place in the list of possible answers. The answer is kept if U < N, which has
probability N/2⁶⁴, exactly. The uniform place comes from the fewest bits that can number the list, drawn again if they
number nothing: exact as well. Bits come from the operating system.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from incrowd.core.errors import InternalError
from incrowd.survey.questionnaire import Answer, Questionnaire

Bytes = Callable[[int], bytes]
"""Gives so many random bytes."""


class Randomizer:
    """Randomises the answers of respondents by one questionnaire.

    **One respondent, one record.** Whoever randomises the same answers twice and sends both reveals twice as much: ε₀
    doubles. If sending fails, send the same record again; never draw another.

    Args:
        questionnaire: a checked one, the content of its file, or the file's name.
        public_key: the PEM file of the Ed25519 key by which it must be signed.

    Raises:
        InputError: it is not a questionnaire, was changed, or is not signed by that key.
        GuaranteeError: it promises more than its retentions keep.
    """

    def __init__(
        self,
        questionnaire: Questionnaire | Mapping[str, Any] | str | Path,
        *,
        public_key: str | Path | None = None,
        _bytes: Bytes = os.urandom,
    ) -> None:
        if isinstance(questionnaire, str | Path):
            checked = Questionnaire.from_file(questionnaire, public_key=public_key)
        elif isinstance(questionnaire, Questionnaire):
            checked = Questionnaire.of(questionnaire.document, public_key=public_key)
        else:
            checked = Questionnaire.of(questionnaire, public_key=public_key)
        self.questionnaire = checked
        self._bytes = _bytes

    def randomize(self, answers: Mapping[str, Answer]) -> dict[str, Answer]:
        """The record to be sent: each answer kept with its retention, else replaced by a uniformly drawn one.

        Raises:
            InputError: an answer is missing, is none of the listed ones, or was not asked for.
        """
        codes = self.questionnaire.codes(answers, "set of answers")
        return self.questionnaire.record(
            _randomized(code, question.numerator, len(question.values), self._bytes)
            for code, question in zip(codes, self.questionnaire.questions, strict=True)
        )

    def envelope(self, answers: Mapping[str, Answer]) -> dict[str, Any]:
        """What is sent to a collector: the randomised record, the questionnaire's digest and a number used once.

        Keep it until the collector has said that it is stored; by its number a second sending is recognised.
        """
        return {
            "questionnaire": self.questionnaire.digest,
            "nonce": _exactly(16, self._bytes).hex(),
            "record": self.randomize(answers),
        }


def _randomized(code: int, numerator: int, size: int, read: Bytes) -> int:
    kept = int.from_bytes(_exactly(8, read), "big") < numerator
    drawn = _uniform(size, read)
    return (drawn, code)[kept]


def _uniform(size: int, read: Bytes) -> int:
    unused = 32 - (size - 1).bit_length()
    while True:
        drawn = int.from_bytes(_exactly(4, read), "big") >> unused
        if drawn < size:
            return drawn


def _exactly(size: int, read: Bytes) -> bytes:
    """So many bytes. Fewer would be taken for zeros, by which answers are kept."""
    drawn = read(size)
    if len(drawn) != size:
        raise InternalError("the source of random bytes gave another number of them")
    return drawn
