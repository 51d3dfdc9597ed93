"""A draft as the text of a policy: YAML with the reasons beside it."""

from __future__ import annotations

import datetime as dt
import re
import shlex
import textwrap
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import yaml

from incrowd.drafting.capacity import Way
from incrowd.drafting.guess import LONGEST_NAME, ColumnDraft
from incrowd.drafting.people import PeopleDraft
from incrowd.policy.texts import MARK
from incrowd.sources.profile import COMMON

_WIDTH = 118
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*([ .-][A-Za-z0-9_]+)*")
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "drop", "quasi", "sensitive", "inf", "nan"}

_HEAD = """\
A draft of a policy{of}, made by `incrowd init`. Parts of it were read off the data, and no guarantee covers those: \
that a value is listed here would already tell that somebody has it. So a person must decide, and remove each mark; \
then: incrowd release THIS_FILE -o DIR{engine}. To look at what would come out before that, add --rehearse: it is void.
"""


def write(
    columns: Sequence[ColumnDraft],
    decisions: Sequence[tuple[str | None, str]],
    *,
    title: str | None,
    data: dict[str, Any],
    missing_values: Sequence[str],
    delta_exponent: int,
    people: PeopleDraft | None = None,
    engine: str | None = None,
    way: Way = "lattice",
) -> str:
    """The text of the policy.

    Args:
        columns: what is proposed for each.
        decisions: what a person has to decide, about a column or about the whole.
        title: what the table is called, if it has a name.
        data: where it is and how it is read.
        missing_values: texts that mean that a value is missing.
        delta_exponent: delta is ten to the power of minus this.
        people: whose the rows seem to be.
        engine: what reads the table, which a release must be told again; it holds no token.
        way: how to publish it.
    """
    with_engine = "" if engine is None else f" --engine {shlex.quote(engine)}"
    out = [*_comment(_HEAD.format(of=f" for {scalar(title)}" if title else "", engine=with_engine)), "#"]
    for number, (concerned, question) in enumerate(decisions, 1):
        about = f"{scalar(concerned)}: " if concerned is not None else ""
        out += _comment(f"{number}. {about}{question}", hanging=3)
    out += ["#", *_comment(f"No text that fewer than {COMMON} records share is in this draft."), "incrowd: 1"]
    if title:
        out.append(f"title: {scalar(title)}")
    out += ["", "data:"]
    if not {"path", "table"} & data.keys():
        out.append("  # path: the file, relative to this one; or give it with --data")
    for key, value in data.items():
        out += _line(key, value, _about(key, value), 2)
    found = (
        f"{MARK} these were found and look like no value"
        if len(missing_values) > 1
        else "an empty field holds no value"
    )
    out += _line("missing_values", list(missing_values), found, 2)
    out += ["", "attributes:"]
    for column in columns:
        out += [*_attribute(column), ""]
    out += _people(people)
    return "\n".join([*out, *_ending(title, delta_exponent, way)]) + "\n"


def _people(people: PeopleDraft | None) -> list[str]:
    """The section about whose the rows are, or a remark that they seem to be people."""
    if people is None:
        return []
    if people.against:
        return [f"rows_are_people: true # {MARK} {people.against}, but {people.found}: is each row a person?", ""]
    if not people.lines:
        return [*_comment(f"{people.found}: each row seems to be a person."), ""]
    out = ["people: # a person may have several rows"]
    for line in people.lines:
        out += _line(line.key, line.value, f"{MARK} {line.note}" if line.confirm else line.note, 2)
    return [*out, ""]


def _about(key: str, path: Any) -> str:
    if key == "decimal":
        return f"{MARK} commas were found where decimals begin"
    if key != "path":
        return ""
    if "://" not in path:
        return "relative to this file"
    return "PGPASSWORD or ~/.pgpass gives a password" if path.startswith("postgres") else ""


def scalar(text: str) -> str:
    """A text as YAML: as it is if nobody could take it for something else, otherwise in quotes."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS and len(text) < 80:
        return text
    return yaml.dump(text, default_style='"', allow_unicode=True, width=10**9).rstrip("\n")


def _attribute(column: ColumnDraft) -> list[str]:
    if not 0 < len(column.name) <= LONGEST_NAME:
        return [f"  # A column that is not listed is left out: {column.why}"]
    name = scalar(column.name)
    if column.role == "drop" and not column.instead:
        return [f"  {name}: drop # {column.why}"]
    role = f"drop # or {column.instead}" if column.instead else column.role
    out = [f"  {name}: # {column.why}", f"    role: {role}", f"    type: {column.type}"]
    for line in column.lines:
        note = f"{MARK} {line.note}" if line.confirm else line.note
        out += _line(line.key, line.value, note, 4)
    if column.hint:
        out.append(f"    # {column.hint}")
    return out


def _line(key: str, value: Any, note: str, indent: int) -> list[str]:
    """A key and its value on one line, or on several if that is too short."""
    margin, comment = " " * indent, f" # {note}" if note else ""
    line = f"{margin}{key}: {_flow(value)}"
    if len(line + comment) <= _WIDTH:
        return [line + comment]
    if isinstance(value, dict):
        return [
            f"{margin}{key}:{comment}",
            *(part for k, v in value.items() for part in _line(scalar(str(k)), v, "", indent + 2)),
        ]
    if not isinstance(value, list):
        return [f"{margin}# {note}", line] if note else [line]
    if value and isinstance(value[0], list):
        return [f"{margin}{key}:{comment}", *(f"{margin}  - {_flow(item)}" for item in value)]
    return [f"{margin}{key}:{comment}", f"{margin}  [", *_wrapped(value, indent + 4), f"{margin}  ]"]


def _wrapped(values: Sequence[Any], indent: int) -> list[str]:
    """Items, as many on a line as go."""
    lines, line = [], " " * indent
    for value in values:
        item = f"{_flow(value)},"
        if line.strip() and len(line) + len(item) > _WIDTH:
            lines.append(line.rstrip())
            line = " " * indent
        line += f"{item} "
    return [*lines, line.rstrip()]


def _flow(value: Any) -> str:
    match value:
        case dict():
            return "{" + ", ".join(f"{scalar(str(key))}: {_flow(item)}" for key, item in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_flow, value)) + "]"
        case Decimal() if value.is_infinite():
            return "-.inf" if value < 0 else ".inf"
        case Decimal():
            digits = format(value, "f")
            return digits.rstrip("0").rstrip(".") if "." in digits else digits
        case dt.date():
            return value.isoformat()
        case str():
            return scalar(value)
        case _:
            return str(value)


def _comment(text: str, hanging: int = 0) -> list[str]:
    return textwrap.wrap(
        " ".join(text.split(" ")).strip(),
        _WIDTH,
        initial_indent="# ",
        subsequent_indent="# " + " " * hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


_MECHANISM = {
    "lattice": "sampled_crowd # a sample; docs/choosing.md has other ways, which keep every record",
    "tree": "sampled_crowd # a sample; docs/choosing.md has other ways, which keep every record",
    "views": "views # counts of a few columns at a time, and a synthetic table; docs/choosing.md says when and why",
}
_FOUND = "  # beta, the share of people who are sampled, and k, the least crowd that is published, are found to suit."
_CHOICE = {
    "lattice": [
        "  selection_epsilon: 0.2 # the part of epsilon that pays for choosing how coarse each column becomes",
        _FOUND,
    ],
    "tree": [
        "  recoding: tree # groups are shown each as finely as they bear; one level per column: docs/choosing.md",
        "  splits: binary # also cut points and unions beyond the hierarchies; hierarchy: only what these have",
        _FOUND,
    ],
    "views": [
        "  by: noise # everybody counts, with noise; crowd: only crowds of a sample",
        "  choose: {how: adaptive} # pairs of columns, chosen privately where the views so far say least",
    ],
}


def _ending(title: str | None, delta_exponent: int, way: Way) -> list[str]:
    people = f"{10 ** (delta_exponent - 1):,}"
    return [
        "release:",
        f"  mechanism: {_MECHANISM[way]}",
        "  epsilon: 2 # the promise: the smaller, the stricter",
        f"  delta: 1.0e-{delta_exponent} # {MARK} well below one over the number of people; fits up to {people}",
        *_CHOICE[way],
        "  output: parquet",
        "",
        "# To keep account of what all releases of this table spend together:",
        "# ledger:",
        "#   path: budget.sqlite",
        f"#   dataset: {scalar(title or 'table')}",
        "#   epsilon: 4",
        f"#   delta: 1.0e-{delta_exponent - 1}",
    ]
