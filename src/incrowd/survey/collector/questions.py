"""From a policy to a questionnaire: the declared values become possible answers, rho becomes retentions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from incrowd.core.errors import InputError, InternalError, PolicyError
from incrowd.core.files import read_ordinary
from incrowd.hierarchy import codings
from incrowd.mechanisms.pram.section import Pram
from incrowd.mechanisms.pram.settle import settle, solve
from incrowd.policy import Policy
from incrowd.survey import Question, Questionnaire
from incrowd.survey.collector.collection import rehearse
from incrowd.survey.questionnaire import numerator64
from incrowd.theory.randomisation import Attribute, RetentionReplacement

NO_ANSWER = "No answer"
_LARGEST_FILE = 16_000_000


def questionnaire_of(policy: Policy, *, records: int, texts: Mapping[str, Any] | None = None) -> Questionnaire:
    """The questionnaire by which respondents randomise what a curator would have randomised by this policy.

    Args:
        policy: its release must be `mechanism: pram`, each attribute being kept or redrawn on its own.
        records: how many records are expected. With a `k` in the policy, retentions are made for that many.
        texts: for some attributes, what is asked and how answers are shown: {name: {question: ..., labels: {...}}}.
    """
    section = policy.release
    if not isinstance(section, Pram):
        raise PolicyError(
            "Respondents randomise by 'mechanism: pram'; the policy says otherwise.",
            code="policy-invalid",
            remedy="Give the section 'release' the mechanism pram, with rho, epsilon or k.",
        )
    if section.matrix or section.joint or section.invariant or section.beta is not None:
        raise PolicyError(
            "Respondents keep or redraw each answer on their own: 'matrix', 'joint', 'invariant' and 'beta' are for a "
            "table.",
            code="policy-invalid",
            remedy="Leave them out of the policy for a questionnaire.",
        )
    if policy.people is not None:
        raise PolicyError(
            "To a collector, one person is one record: it cannot tell who has answered before.",
            code="policy-invalid",
            remedy="Leave the section 'people' out of the policy for a questionnaire.",
        )
    attributes = codings(policy)
    settled = settle(section, policy, attributes)
    lists = [a.hierarchy.recode(settled.levels[a.name]).labels for a in attributes]
    kept = [block.law for block in solve(settled.wishes, section.k, section.epsilon, records)]
    found = section.rho is None
    said = dict(texts or {})
    questions = [
        _question(attribute.name, values, _numerator(law, found), said.pop(attribute.name, {}))
        for attribute, values, law in zip(attributes, lists, kept, strict=True)
    ]
    if said:
        raise _wrong_texts(f"{', '.join(map(repr, said))}: no such attribute is asked for")
    made = Questionnaire.make(policy.title or "Questionnaire", questions, records=records, delta=section.delta)
    rehearse(made)
    return made


def read_texts(path: str | Path) -> Mapping[str, Any]:
    """The wording of questions, from a YAML file."""
    import yaml

    try:
        raw = read_ordinary(path, _LARGEST_FILE)
        if len(raw) > _LARGEST_FILE:
            raise _wrong_texts(f"{path} is too large")
        content = yaml.safe_load(raw.decode())
    except OSError as error:
        raise _wrong_texts(f"{path} cannot be read: {error.strerror or type(error).__name__}") from None
    except (UnicodeDecodeError, yaml.YAMLError):
        raise _wrong_texts(f"{path} is not YAML in UTF-8") from None
    if not isinstance(content, Mapping):
        raise _wrong_texts(f"{path} must give texts by attribute")
    return content


def _numerator(law: Attribute, found: bool) -> int:
    """The retention as a questionnaire has it.

    One that was found for a promise is lowered by a trifle, which keeps the promise. Devices prove the promise with a
    margin for their rounding errors, and would else print the next larger number.
    """
    if not isinstance(law, RetentionReplacement):
        raise InternalError("a matrix was not refused")
    return numerator64(law.retention * (1 - 2.0**-32) if found else law.retention)


def _question(name: str, values: Sequence[str | None], numerator: int, said: Any) -> Question:
    if not isinstance(said, Mapping) or not set(said) <= {"question", "labels"}:
        raise _wrong_texts(f"{name!r}: give 'question' and 'labels', and nothing else")
    labels = said.get("labels", {})
    if not isinstance(labels, Mapping):
        raise _wrong_texts(f"{name!r}: labels are given by value")
    # YAML reads some values as numbers or truth values; here they stand for their labels.
    shown = {_written(value): str(label) for value, label in labels.items()}
    if unknown := set(shown) - set(values):
        raise _wrong_texts(f"{name!r}: {len(unknown)} labels are for values that it does not have")
    texts = tuple(shown.get(value, NO_ANSWER if value is None else value) for value in values)
    return Question(name, str(said.get("question", name)), tuple(values), texts, numerator)


def _written(value: Any) -> str | None:
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _wrong_texts(what: str) -> InputError:
    return InputError(
        f"The texts of the questionnaire cannot be used: {what}.",
        code="questionnaire-invalid",
        remedy="Write them as `name: {question: ..., labels: {value: ...}}`.",
    )
