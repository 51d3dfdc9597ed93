"""The questionnaire: a public file with questions, possible answers, retentions and the promise; no data.

It is canonical JSON with a digest over all of it and, if its publisher signed it, an Ed25519 signature. Every number in
it is a whole number or a decimal text, so that Python and JavaScript write it, and therefore digest it, alike.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from incrowd.core.errors import GuaranteeError, InputError, ParameterError, UnreachableError
from incrowd.core.files import read_ordinary
from incrowd.core.signing import is_sealed, seal, sign, signature_is_valid, to_bytes
from incrowd.survey import promise
from incrowd.survey.promise import WHOLE, Kept

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

FORMAT = "incrowd-questionnaire/1"
MOST_QUESTIONS, MOST_VALUES, MOST_RECORDS = 100, 10_000, 10**15
_LONGEST = 2_000
_LARGEST_FILE = 16_000_000
# Control characters, halves of characters, and what turns the direction of text around it: none belongs into a form.
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")

Answer = str | None
"""A value of an attribute; None stands for a missing one, where that is among the declared values."""


@dataclass(frozen=True)
class Question:
    """One attribute of the record.

    Attributes:
        name: of the attribute.
        text: what is asked.
        values: the possible answers, declared and never read off any data.
        labels: how each of them is shown.
        numerator: the answer is kept with probability numerator/2⁶⁴.
    """

    name: str
    text: str
    values: tuple[Answer, ...]
    labels: tuple[str, ...]
    numerator: int

    @property
    def kept(self) -> Kept:
        """What decides this answer's part of the promise."""
        return Kept(self.numerator, len(self.values))

    @property
    def retention(self) -> Fraction:
        """ρ, exactly."""
        return Fraction(self.numerator, WHOLE)


@dataclass(frozen=True, eq=False)
class Questionnaire:
    """A questionnaire that was checked: it is whole, and its promise follows from its retentions.

    Attributes:
        title: of the survey.
        questions: in the order of the record.
        records: how many records are expected; the promises about the published table need at least so many.
        document: the file's content.
    """

    title: str
    questions: tuple[Question, ...]
    records: int
    document: Mapping[str, Any]

    @classmethod
    def make(cls, title: str, questions: Sequence[Question], *, records: int, delta: float = 1e-6) -> Self:
        """A new questionnaire, its promise computed.

        Args:
            title: of the survey.
            questions: at least one; retentions below 1, for certainty cannot be promised anything.
            records: the number of records that are expected.
            delta: of the promise about the published table.
        """
        if not 0 < delta < 1:
            raise ParameterError("delta must lie between 0 and 1.", code="parameter-range")
        body = {
            "format": FORMAT,
            "title": title,
            "attributes": [
                {
                    "name": question.name,
                    "question": question.text,
                    "values": [
                        {"value": value, "label": label}
                        for value, label in zip(question.values, question.labels, strict=True)
                    ],
                    "retention": {"numerator": str(question.numerator), "denominator": str(WHOLE)},
                }
                for question in questions
            ],
            "records": records,
            "promise": {},
        }
        _read(body)  # refuses what the promise cannot be computed for
        try:
            body["promise"] = promise.state([question.kept for question in questions], records, delta)
        except OverflowError:
            raise UnreachableError(
                "So much of the answers is kept that nothing can be promised.",
                code="unreachable",
                remedy="Keep less, or ask for less.",
            ) from None
        return cls.of(seal(body))

    @classmethod
    def of(cls, document: Any, *, public_key: str | Path | None = None) -> Self:
        """A questionnaire from the content of its file, after checking all that can be checked.

        Args:
            document: the content, as JSON has it.
            public_key: a PEM file with the publisher's Ed25519 key; the signature must then be there and be by it.

        Raises:
            InputError: it is not a questionnaire, was changed, or is not signed by that key.
            GuaranteeError: it promises more than its retentions keep.
        """
        title, questions, records = _read(document)
        if not is_sealed(document):
            raise InputError(
                "The questionnaire was changed after it was made: its digest is that of another.",
                code="questionnaire-invalid",
                remedy="Get it once more from whoever published it.",
            )
        if (public_key is not None or "signature" in document) and not signature_is_valid(document, public_key):
            raise InputError(
                "The questionnaire is not signed by the key that it should be signed by.",
                code="questionnaire-signature",
                remedy="Do not answer it. Ask its publisher for the questionnaire and for the public key.",
            )
        if not promise.follows(document["promise"], [question.kept for question in questions], records):
            raise GuaranteeError(
                "The questionnaire promises what its retentions do not keep.",
                code="promise-not-kept",
                remedy="Do not answer it. Ask its publisher for another.",
            )
        return cls(title, questions, records, document)

    @classmethod
    def from_bytes(cls, content: bytes, *, public_key: str | Path | None = None) -> Self:
        """A questionnaire from the bytes of its file."""
        try:
            return cls.of(read_json(content), public_key=public_key)
        except ValueError as error:
            raise _wrong(str(error)) from None

    @classmethod
    def from_file(cls, path: str | Path, *, public_key: str | Path | None = None) -> Self:
        try:
            content = read_ordinary(path, _LARGEST_FILE)
        except OSError as error:
            raise InputError(
                f"Cannot read {path}: {error.strerror or type(error).__name__}.", code="questionnaire-invalid"
            ) from None
        if len(content) > _LARGEST_FILE:
            raise _wrong("it is too large")
        return cls.from_bytes(content, public_key=public_key)

    @property
    def digest(self) -> str:
        """What a record names, so that it is counted with its like only."""
        return str(self.document["digest"])

    @property
    def promise(self) -> Mapping[str, Any]:
        """The promise, as stated and checked."""
        stated: Mapping[str, Any] = self.document["promise"]
        return stated

    def signed(self, key: Ed25519PrivateKey) -> Self:
        """The same questionnaire with a signature."""
        return type(self).of(sign(self.document, key))

    def to_bytes(self) -> bytes:
        """The file: canonical JSON."""
        return to_bytes(self.document)

    def codes(self, record: Any, what: str = "record") -> tuple[int, ...]:
        """The record as the places of its values, or an error that never repeats them."""
        if not isinstance(record, Mapping):
            raise _unfit(f"A {what} has a value for each attribute, by name.")
        names = {name: None for name, _ in self._places}
        if unknown := sum(name not in names for name in record):
            raise _unfit(f"The {what} has {unknown} attributes that the questionnaire does not ask for.")
        if absent := [name for name in names if name not in record]:
            raise _unfit(f"The {what} has no value for {', '.join(map(repr, absent))}.")
        codes = []
        for name, places in self._places:
            value = record[name]
            if not (value is None or isinstance(value, str)) or value not in places:
                raise _unfit(f"The value for {name!r} is none of those that the questionnaire lists.")
            codes.append(places[value])
        return tuple(codes)

    @cached_property
    def _places(self) -> list[tuple[str, dict[Answer, int]]]:
        """For each attribute, where in its list each value stands."""
        return [(q.name, {value: code for code, value in enumerate(q.values)}) for q in self.questions]

    def record(self, codes: Iterable[int]) -> dict[str, Answer]:
        """The record whose values are at these places."""
        return {q.name: q.values[code] for q, code in zip(self.questions, codes, strict=True)}


def numerator64(retention: float | Fraction) -> int:
    """⌊ρ·2⁶⁴⌋, for ρ in [0, 1). A smaller ρ keeps every promise made for a larger one."""
    if (isinstance(retention, float) and not math.isfinite(retention)) or not 0 <= retention < 1:
        raise ParameterError(
            "A retention must be 0 or above and below 1: an answer that is always kept is not protected.",
            code="parameter-range",
        )
    return math.floor(Fraction(retention) * WHOLE)


def read_json(content: bytes) -> Any:
    """JSON in UTF-8, every key once; anything else is a ValueError that repeats nothing of it."""
    try:
        return json.loads(content.decode("utf-8"), object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON in UTF-8, or has a key twice") from None


# --- reading, strictly ----------------------------------------------------------------------------------------------


def _read(document: Any) -> tuple[str, tuple[Question, ...], int]:
    keys = {"format", "title", "attributes", "records", "promise"}
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise _wrong(f"it is not of the format {FORMAT}")
    if not keys <= set(document) <= keys | {"digest", "signature"} or not isinstance(document["promise"], dict):
        raise _wrong("it lacks a part, or has one that does not belong there")
    title, records, listed = _text(document["title"], "the title"), document["records"], document["attributes"]
    if type(records) is not int or not 1 <= records <= MOST_RECORDS:
        raise _wrong("the expected number of records must be a whole number above 0")
    if not isinstance(listed, list) or not 1 <= len(listed) <= MOST_QUESTIONS:
        raise _wrong(f"it must ask at least one question and at most {MOST_QUESTIONS}")
    questions = tuple(_question(item) for item in listed)
    if len({question.name for question in questions}) != len(questions):
        raise _wrong("two attributes have the same name")
    return title, questions, records


def _question(item: Any) -> Question:
    if not isinstance(item, dict) or set(item) != {"name", "question", "values", "retention"}:
        raise _wrong("an attribute has a name, a question, values and a retention, and nothing else")
    name, text = _text(item["name"], "the name of an attribute"), _text(item["question"], "a question")
    listed = item["values"]
    if not isinstance(listed, list) or not 2 <= len(listed) <= MOST_VALUES:
        raise _wrong(f"{name!r} must have at least 2 and at most {MOST_VALUES:,} values")
    if any(not isinstance(one, dict) or set(one) != {"value", "label"} for one in listed):
        raise _wrong(f"each value of {name!r} has a value and a label, and nothing else")
    values = tuple(None if one["value"] is None else _text(one["value"], f"a value of {name!r}") for one in listed)
    labels = tuple(_text(one["label"], f"a label of {name!r}") for one in listed)
    looks = {_look(label) for label in labels}
    if len(set(values)) != len(values) or len(looks) != len(labels) or "" in looks:
        raise _wrong(f"two values of {name!r} are the same or look the same")
    return Question(name, text, values, labels, _numerator(item["retention"], name))


def _numerator(retention: Any, name: str) -> int:
    if not isinstance(retention, dict) or set(retention) != {"numerator", "denominator"}:
        raise _wrong(f"the retention of {name!r} is not a fraction")
    text = retention["numerator"]
    if (
        retention["denominator"] != str(WHOLE)
        or not isinstance(text, str)
        or not re.fullmatch("0|[1-9][0-9]{0,19}", text)
    ):
        raise _wrong(f"the retention of {name!r} is not a whole number over 2**64")
    if int(text) >= WHOLE:
        raise _wrong(f"the retention of {name!r} must be below 1: an answer that is always kept is not protected")
    return int(text)


def _text(text: Any, what: str) -> str:
    if not isinstance(text, str) or not text.strip() or len(text) > _LONGEST or _UNFIT.search(text):
        raise _wrong(f"{what} must be a text of at most {_LONGEST:,} characters, without control characters")
    return text


def _look(label: str) -> str:
    """What a reader can tell of a label: neither marks that are not seen nor how wide a space is."""
    seen = "".join(character for character in label if unicodedata.category(character) != "Cf")
    return " ".join(unicodedata.normalize("NFKC", seen).split())


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a key is there twice")
    return content


def _wrong(what: str) -> InputError:
    return InputError(
        f"This is not a questionnaire that can be used: {what}.",
        code="questionnaire-invalid",
        remedy="Make one with `incrowd questionnaire`.",
    )


def _unfit(message: str) -> InputError:
    return InputError(message, code="answers-invalid", remedy="Answer every question with one of its listed values.")
