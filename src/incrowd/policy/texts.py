"""YAML into plain dictionaries whose scalars are all text, with the line of each; and errors that point there.

PyYAML's own loaders decide what a scalar is before anyone knows what it is for: Norway's ``NO`` becomes false, ``1e-5``
a text, ``010`` eight. Here its parser is used and nothing behind it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pydantic import BaseModel, ValidationError

from incrowd.core.errors import PolicyError
from incrowd.core.files import read_ordinary
from incrowd.core.numbers import as_given

Place = tuple[str | int, ...]

MARK = "CONFIRM"
"""Begins a comment on what a draft has read off the data, until a person has confirmed it and removed the mark."""

LARGEST_FILE = 64 << 20
_DEEPEST = 40
_MOST_NODES = 5_000_000
_SHOWN = 10
_PLAIN_TAGS = {None, "!", *(f"tag:yaml.org,2002:{t}" for t in ("str", "int", "float", "bool", "null", "seq", "map"))}
_NULLS = ("", "~", "null", "Null", "NULL")
_FOLDED = re.compile("[\x85\u2028\u2029]")  # ends of lines to YAML, and part of a text to everybody else
MARKED = re.compile(rf"(?:^|\s)(?P<mark># {MARK}\b)(?P<note>.*)$")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml where it is there


class Problem(NamedTuple):
    """One thing that is wrong with a policy."""

    line: int | None
    path: str
    text: str

    def __str__(self) -> str:
        where = [f"line {self.line}"] if self.line else []
        return f"{', '.join([*where, self.path] if self.path else where)}: {self.text}".removeprefix(": ").removesuffix(
            ": "
        )


@dataclass(frozen=True)
class Document:
    """What a policy says, before it is known whether it makes sense.

    Attributes:
        content: mappings, lists, texts and None.
        name: what the policy is called in messages.
        lines: the line of each key and item, by its path.
        marks: what a person is still asked to confirm.
    """

    content: Any
    name: str = "The policy"
    lines: Mapping[Place, int] = field(default_factory=dict)
    marks: tuple[Problem, ...] = ()

    def line(self, place: Place) -> int | None:
        """The line of the nearest thing that encloses the place."""
        for end in range(len(place), -1, -1):
            if place[:end] in self.lines:
                return self.lines[place[:end]]
        return None

    def problem(self, place: Place, text: str) -> Problem:
        """Something wrong at a place."""
        return Problem(self.line(place), ".".join(map(str, place)), text)


def read_text(path: str | Path) -> str:
    """The text of a policy file."""
    try:
        raw = read_ordinary(path, LARGEST_FILE)
    except OSError as error:
        raise PolicyError(
            f"Cannot read the policy {path}: {error.strerror or type(error).__name__}.",
            code="policy-file",
            remedy="Check its name and folder.",
        ) from None
    if len(raw) > LARGEST_FILE:
        raise _too_large(str(path))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise PolicyError(
            f"{path}, line {line}: this is not UTF-8 text.",
            code="policy-file",
            remedy="Save the policy as UTF-8.",
            details={"line": line},
        ) from None


def parse(text: str, name: str = "The policy") -> Document:
    """The one document in a YAML text."""
    if len(text) > LARGEST_FILE:
        raise _too_large(name)
    if found := _FOLDED.search(text):
        said = f'the character U+{ord(found.group()):04X} would be taken for the end of a line; write it as "\\u'
        raise _syntax(text.count("\n", 0, found.start()) + 1, f'{said}{ord(found.group()):04x}" in quotes', name)
    try:
        document = _Builder(text, name).document()
        return replace(document, marks=tuple(_marks(text, document.lines)))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = ", ".join(part for part in (error.context, error.problem) if part)
        raise _syntax(mark.line + 1 if mark else None, said, name) from None
    except yaml.YAMLError:
        raise _syntax(None, "it contains characters that YAML does not allow", name) from None


def _marks(text: str, lines: Mapping[Place, int]) -> Iterator[Problem]:
    """Comments that begin with the mark, each with the key that it stands behind; with none if it has its own line."""
    if MARK not in text:
        return
    quoted = [_extent(token) for token in yaml.scan(text, Loader=_LOADER) if isinstance(token, yaml.ScalarToken)]
    for number, line in enumerate(re.split("\r\n|\r|\n", text)):
        found = MARKED.search(line)
        if found is None or any(first <= (number, found.start("mark")) < last for first, last in quoted):
            continue
        here = "" if not line[: found.start("mark")].strip() else _key(lines, number + 1)
        yield Problem(number + 1, here, found["note"].strip())


def _extent(token: Any) -> tuple[tuple[int, int], tuple[int, int]]:
    """Where a text begins and ends; behind the sign that begins a block there may be a comment."""
    start, end = token.start_mark, token.end_mark
    return (start.line + 1, 0) if token.style in ("|", ">") else (start.line, start.column), (end.line, end.column)


def _key(lines: Mapping[Place, int], line: int) -> str:
    """The outermost key that begins in a line, or in the nearest one above it."""
    nearest = max((found for place, found in lines.items() if place and found <= line), default=0)
    places: list[Place] = sorted((place for place, found in lines.items() if place and found == nearest), key=len)
    return ".".join(map(str, places[0])) if places else ""


class _Builder:
    def __init__(self, text: str, name: str) -> None:
        self._events: Iterator[Any] = iter(yaml.parse(text, Loader=_LOADER))
        self._name = name
        self._lines: dict[Place, int] = {}
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._nodes = 0

    def document(self) -> Document:
        next(self._events)
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return Document(None, self._name)
        content = self._node(next(self._events), ())
        next(self._events)
        following = next(self._events)
        if not isinstance(following, yaml.StreamEndEvent):
            raise self._wrong(following, "a policy is one document; a second one begins here")
        return Document(content, self._name, self._lines)

    def _node(self, event: Any, place: Place) -> Any:
        self._lines.setdefault(place, event.start_mark.line + 1)
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise self._wrong(event, "this alias has no anchor before it")
            content, size = self._anchors[event.anchor]
            self._count(event, size)
            return content
        if event.tag not in _PLAIN_TAGS:
            raise self._wrong(event, "tags have no meaning in a policy")
        before = self._nodes
        self._count(event, 1)
        if len(place) > _DEEPEST:
            raise self._wrong(event, f"nested deeper than {_DEEPEST} levels")
        if isinstance(event, yaml.ScalarEvent):
            content = event.value
            if not event.style and (content in _NULLS if place and isinstance(place[-1], str) else content == ""):
                content = None
        elif isinstance(event, yaml.SequenceStartEvent):
            content = self._sequence(place)
        else:
            content = self._mapping(place)
        if event.anchor:
            self._anchors[event.anchor] = content, self._nodes - before
        return content

    def _sequence(self, place: Place) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(event, (*place, len(items))))
        return items

    def _mapping(self, place: Place) -> dict[str, Any]:
        content: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key, line = getattr(event, "value", None), event.start_mark.line + 1
            if key is None:
                raise self._wrong(event, "a key must be a plain text")
            if key == "<<" and not event.style:
                merged = self._merge(event, place) | merged
                continue
            if key in content:
                first = self._lines[(*place, key)]
                raise self._wrong(event, f"the key '{key}' is already given in line {first}")
            self._lines[(*place, key)] = line
            content[key] = self._node(next(self._events), (*place, key))
        return merged | content

    def _merge(self, event: Any, place: Place) -> dict[str, Any]:
        value = self._node(next(self._events), (*place, "<<"))
        parts = value if isinstance(value, list) else [value]
        if not all(isinstance(part, dict) for part in parts):
            raise self._wrong(event, "'<<' must be given a mapping")
        return {key: item for part in reversed(parts) for key, item in part.items()}

    def _count(self, event: Any, nodes: int) -> None:
        self._nodes += nodes
        if self._nodes > _MOST_NODES:
            raise self._wrong(event, "the aliases expand to far too much")

    def _wrong(self, event: Any, text: str) -> PolicyError:
        return _syntax(event.start_mark.line + 1, text, self._name)


def _too_large(name: str) -> PolicyError:
    return refusal([Problem(None, "", "the file is larger than 64 MB; put long lists into files of their own")], name)


def _syntax(line: int | None, text: str, name: str) -> PolicyError:
    where = f", line {line}" if line else ""
    return PolicyError(
        f"{name}{where}: this is not the YAML of a policy: {text}.", code="policy-syntax", details={"line": line}
    )


def refusal(problems: Iterable[Problem], name: str) -> PolicyError:
    """One error for everything that is wrong, short enough for one screen."""
    found = sorted(set(problems), key=lambda problem: (problem.line or 0, *problem[1:]))
    if len(found) == 1:
        message = f"{name}, {found[0]}" if found[0].line or found[0].path else f"{name}: {found[0].text}"
        message += "" if message.endswith("?") else "."
    else:
        shown = "".join(f"\n  {problem}" for problem in found[:_SHOWN])
        more = f"\n  and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        message = f"{name} has {len(found)} problems:{shown}{more}"
    return PolicyError(message, code="policy-invalid", details={"problems": [problem._asdict() for problem in found]})


def to_be_confirmed(marks: Sequence[Problem]) -> PolicyError:
    """The error of a draft that nobody has confirmed."""
    shown = "".join(f"\n  {mark}" for mark in marks[:_SHOWN])
    more = f"\n  and {len(marks) - _SHOWN} more" if len(marks) > _SHOWN else ""
    return PolicyError(
        f"The policy is a draft: parts of it were read off the data, and nobody has confirmed them:{shown}{more}",
        code="policy-unconfirmed",
        remedy=f"Say, from what you know of the survey, which values there can be, then remove each mark {MARK}. To "
        "look at what would come out before that: --rehearse; it is void and costs nothing.",
        details={"unconfirmed": [mark._asdict() for mark in marks]},
    )


def written_marks(marks: Iterable[Problem]) -> str:
    """Marks as comments, each on a line of its own."""
    notes = (f"{mark.path}: {mark.text}" if mark.path else mark.text for mark in marks)
    return "".join(f"# {MARK} {''.join(c if c.isprintable() else '?' for c in note)}\n" for note in notes)


def explain(error: ValidationError, document: Document, section: Callable[[Place], type[BaseModel]]) -> list[Problem]:
    """Pydantic's findings in the words of a policy.

    Args:
        error: what pydantic found.
        document: where it was found.
        section: the model whose keys stand at a place.
    """
    found = error.errors(include_url=False)
    corrected = set()
    problems = []
    for item in found:
        if item["type"] == "extra_forbidden":
            *above, key = item["loc"]
            model = section(tuple(above))
            guess = closest(str(key), keys_of(model))
            hint = f"; did you mean '{guess}'?" if guess else f"; known are {several(keys_of(model))}"
            why = getattr(model, "REFUSED", {}).get(key)
            if why is None:
                corrected.add((*above, guess))
            problems.append(document.problem(_place(item["loc"]), why or f"there is no such key{hint}"))
    for item in found:
        if item["type"] == "missing":
            if item["loc"] not in corrected:  # or else it is there, misspelt
                problems.append(document.problem(_place(item["loc"][:-1]), f"the key '{item['loc'][-1]}' is missing"))
        elif "problems" in item.get("ctx", {}):
            problems += [document.problem(_place((*item["loc"], *at)), text) for at, text in item["ctx"]["problems"]]
        elif item["type"] != "extra_forbidden":
            problems.append(document.problem(_place(item["loc"]), _words(item)))
    return problems


def closest(word: str, words: Iterable[str]) -> str | None:
    """The known word that was probably meant."""
    known = {known.lower(): known for known in words}
    found = difflib.get_close_matches(word.lower(), known, 1, 0.6)
    return known[found[0]] if found else None


def at(content: Any, place: Place) -> Any:
    """What stands at a place of dictionaries and lists."""
    for part in place:
        content = content[part]
    return content


def keys_of(model: type[BaseModel]) -> list[str]:
    """The keys of a section as they are written."""
    return [info.alias or name for name, info in model.model_fields.items()]


def _place(loc: Iterable[str | int]) -> Place:
    """A path in the policy: pydantic's, without its marks for the members of a union."""
    return tuple(part for part in loc if not str(part).startswith("@"))


def several(words: Iterable[str], last: str = " and ") -> str:
    """Words in quotes, one after the other."""
    *most, end = [f"'{word}'" for word in words]
    return last.join([", ".join(most), end] if most else [end])


_WORDS = {
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "string_type": "must be a text",
    "string_too_short": "must not be empty",
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping of keys to values",
    "mapping_type": "must be a mapping of keys to values",
    "model_type": "must be a mapping of keys to values",
    "model_attributes_type": "must be a mapping of keys to values",
    "too_short": "must not be empty",
}
_LIMITS = {
    "greater_than": ("gt", "must be above"),
    "greater_than_equal": ("ge", "must be at least"),
    "less_than": ("lt", "must be below"),
    "less_than_equal": ("le", "must be at most"),
}


def _words(item: Any) -> str:
    kind, context = item["type"], item.get("ctx", {})
    if item["input"] is None:
        return "has no value"
    if kind in _LIMITS:
        key, words = _LIMITS[kind]
        return f"{words} {as_given(context[key])}"
    if kind == "literal_error":
        known = [word.strip("'") for word in context["expected"].replace(" or ", ", ").split(", ")]
        guess = closest(str(item["input"]), known) if len(known) > 1 else None
        return f"must be {several(known, ' or ')}" + (f"; did you mean '{guess}'?" if guess else "")
    return _WORDS.get(kind) or str(item["msg"]).removeprefix("Value error, ")
