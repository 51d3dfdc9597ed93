"""The page about the certificate: its fields are those of certificates that are made here, on a small table.

Which fields a verifier would notice is found out too: each is changed by itself, the certificate is sealed again as a
forger would do, and the folder is verified.
"""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

import incrowd
from incrowd.core.signing import seal, to_bytes
from incrowd.mechanisms.registry import MECHANISMS

Path_ = tuple[str, ...]

_PEOPLE = """
  age: {type: integer, domain: {from: 0, to: 99}, hierarchy: {widths: [10, 50]}, level: %d}
  sex: {domain: [female, male]}
"""
POLICIES = {
    "sampled_crowd": _PEOPLE % 1 + "release: {mechanism: sampled_crowd, epsilon: 2, delta: 1e-5}",
    "generalization": _PEOPLE % 2
    + """  smoker: {role: sensitive, domain: [yes, no]}
release:
  mechanism: generalization
  adversaries: [{name: a neighbour, stubbornness: 100, knows: 2, belief_ratio: 3}]
  require: [{k: 5}]
""",
    "pram": _PEOPLE % 2 + "release: {mechanism: pram, k: 20}",
    "sample": _PEOPLE % 2 + "release: {mechanism: sample, epsilon: 0.5, delta: 0.05}",
}
COPIES = ("promise", "together")

OPAQUE = {("policy",), ("files",), ("software",)}
"""Fields that are shown as a whole: their keys are files or programs, or the policy's own."""

BY_NAME = {
    ("mechanism", "levels"),
    ("mechanism", "trees"),
    ("mechanism", "rounded"),
    ("mechanism", "adversaries", "weights"),
}
"""Fields whose keys are names of columns or values."""

COMMON: dict[Path_, str] = {
    ("format",): "What kind of document it is, and its version.",
    ("title",): "What the release is called; the policy's title, or nothing.",
    ("promise", "notion"): "Which promise it is. Read it first.",
    ("promise", "relation"): "Which tables are compared.",
    ("promise", "in_words"): "The promise in sentences, made from the numbers and rounded to the safe side.",
    ("promise", "grounds"): "The theorems that it rests on.",
    (
        "promise",
        "together",
    ): "If it is one of several releases made at once: how many, and what they promise together. Else nothing.",
    ("promise", "void"): "Nothing, or why nothing is promised: a rehearsal, or drawn from predictable bits, for tests.",
    ("mechanism", "name"): "The mechanism.",
    ("mechanism", "levels"): "The level at which each column is shown.",
    ("assumptions",): "Premises that nobody can check from outside, each a sentence.",
    ("columns", "name"): "The columns, in the order of the table.",
    ("columns", "labels"): "All that a column could show, whether or not it occurs; null is a missing value.",
    ("policy",): "The policy, complete, with every default spelled out.",
    ("policy_digest",): "SHA-256 of the policy in canonical form. `incrowd ledger show` lists releases by it.",
    ("files",): "The table, or each of its parts, and the report, each with its `sha256` and its size in `bytes`.",
    ("software",): "The versions of incrowd, Python and the libraries that count, draw and write.",
    ("randomness",): "Where the random bits came from.",
    ("created",): "The day, in UTC.",
    ("digest",): "SHA-256 of all other fields in canonical form, the signature apart.",
}
OWN: dict[str, dict[Path_, str]] = {
    "sampled_crowd": {
        ("promise", "epsilon"): "ε, what the choice of levels costs included.",
        ("promise", "delta"): "δ as promised.",
        ("mechanism", "k"): "The least crowd that is shown.",
        ("mechanism", "beta"): "The probability with which each record was sampled.",
        ("mechanism", "selection_epsilon"): "The part of ε that was spent on choosing levels.",
        ("mechanism", "exact_delta"): "The δ that k, β and the rest of ε really have: at most the one promised.",
        (
            "mechanism",
            "already_sampled",
        ): "Whether the table was taken to be a sample itself, so that nothing was sampled.",
        ("mechanism", "levels_chosen"): "The columns whose levels were chosen privately.",
    },
    "generalization": {
        ("promise", "adversaries", "name"): "Whom it is to withstand.",
        ("promise", "adversaries", "sensitive"): "The column she wants to know.",
        ("promise", "adversaries", "belief_ratio"): "The belief ratio that is promised.",
        ("promise", "adversaries", "belief_ratio_reached"): "The smallest that this table has, rounded up.",
        ("promise", "adversaries", "p_in"): "Her belief in the worst case, with the person in the table …",
        ("promise", "adversaries", "p_out"): "… and with the person left out.",
        ("promise", "requirements"): "What every group has besides.",
        ("mechanism", "recoding"): "`full_domain` or `local`.",
        ("mechanism", "suppression"): "The largest share of records that might be left out. How many were is not said.",
        ("mechanism", "levels_chosen"): "The columns whose levels were chosen by looking at the table.",
        ("mechanism", "adversaries", "name"): "Whom it is to withstand.",
        ("mechanism", "adversaries", "class"): "I, II or III.",
        ("mechanism", "adversaries", "sensitive"): "The column she wants to know.",
        (
            "mechanism",
            "adversaries",
            "weights",
        ): "Her prior's parameters or her shares, by value; nothing for class II.",
        ("mechanism", "adversaries", "stubbornness"): "How firmly she believes; nothing for class III.",
        ("mechanism", "adversaries", "or_less_stubborn"): "Whether those who believe less firmly are covered too.",
        ("mechanism", "adversaries", "knows"): "How many records she knows.",
        ("mechanism", "adversaries", "predicates"): "What she must not learn.",
        (
            "mechanism",
            "adversaries",
            "seen",
        ): "If she has seen an earlier table: how many people of each value were in it.",
        (
            "mechanism",
            "trees",
        ): "For t-closeness with hierarchical distances: the levels of the sensitive column's hierarchy.",
    },
    "pram": {
        ("promise", "epsilon"): "The central ε, of the shuffled table: the one that a ledger counts.",
        ("promise", "delta"): "The central δ.",
        ("promise", "k"): "Nobody is linked to a record with a probability above 1/k. Rounded down.",
        ("promise", "local_epsilon"): "ε₀, of each record by itself.",
        ("promise", "records"): "The number of records for which this is promised.",
        ("promise", "bound"): "Which proof gives the central ε.",
        (
            "promise",
            "parts",
            "linking",
        ): "The promise about k by itself: `notion`, `k`, `relation`, `theorem`, `in_words`.",
        ("promise", "parts", "local"): "The promise about each record, in the same way.",
        ("promise", "parts", "central"): "The promise about the shuffled table, in the same way.",
        ("mechanism", "blocks", "attributes"): "Columns that are redrawn together.",
        ("mechanism", "blocks", "sizes"): "How many values each of them has.",
        (
            "mechanism",
            "blocks",
            "rho",
        ): "The probability with which values are kept; or else `matrix`, in exact fractions.",
        ("mechanism", "records"): "The number of records published.",
        (
            "mechanism",
            "invariant",
        ): "Whether shares are kept on average. Then nothing is promised, and `promise` says so.",
        ("mechanism", "randomised_by"): "`curator`, or `respondents` if nobody ever had the true table.",
    },
    "sample": {
        ("promise", "epsilon"): "ε: likelihoods change by a factor 1 + ε at most.",
        ("promise", "delta"): "δ: the probability of a sample of which that is not true.",
        ("promise", "rows_unknown"): "c, how many rows may change together.",
        (
            "promise",
            "found_by_looking_at_this_table",
        ): "Which of ε, δ and the rate was found; nothing if all were planned.",
        (
            "mechanism",
            "rate",
        ): "The probability with which each record was sampled. At most three digits if it was found.",
        ("mechanism", "rounded"): "Columns that were rounded at random, each with what its numbers are multiples of.",
        ("mechanism", "epoch"): "The number of the epoch of a stream, or nothing.",
    },
}
PARTS_OF_PRAM = {("promise", "parts", part) for part in ("linking", "local", "central")}

INTRO = """\
# The certificate

Every release has a `certificate.json`: what was promised, on what grounds, and for which file. It holds what the
guarantee covers and nothing else that was read off the data. [Reading a certificate](reading-a-certificate.md) walks
through one; this page lists the fields.

The file is *canonical JSON*: UTF-8, keys sorted, no blanks, one newline at its end, no NaN or infinity. So there is one
way to write it, and a change anywhere shows in its `digest`. Fields that are not listed here are not allowed, at the
top, in `columns`, in `files` and in `signature`: they could tell what no promise covers.

The column *noticed* says what `incrowd verify` does if this field alone is changed and the certificate is sealed again,
as a forger would do: *yes*, it finds the release invalid; *no*, it cannot know, and the field is the publisher's word.
Whether the publisher is who they say is a matter of the signature.

The tables below are written from real certificates.
"""
CHECKS = """
## What is checked

`incrowd verify FOLDER` makes these checks with nothing but the folder. In Python they are `verify(folder).checks`, each
with `name`, `holds` and `detail`.
"""
RIGOROUS = """
With `--rigorous` also, each number computed a second time in [ball arithmetic](limits.md#arithmetic):

- of `sampled_crowd`: exact_delta, delta
- of `pram`: local_epsilon, k, delta

Belief ratios are exact fractions already, and the rate of a plain sample follows from a table that is not published.
"""
SIGNATURE = """
## The signature

`incrowd release --sign-with KEY` adds a field `signature` with `algorithm` (`Ed25519`), `public_key` (32 bytes, base64)
and `value` (64 bytes, base64). It covers the `format` and the `digest`, and by the digest everything else.
`incrowd keys` makes a pair of keys. `incrowd verify FOLDER --key FILE` fails unless the signature is there,
valid, and by that key. Without a key, a signature that is there must be valid by the key that it names, which says
nothing about whose it is.

## Questionnaires

The file that [respondents](local.md) randomise by is a document of the same make: canonical JSON with a `format`, a
`digest` and perhaps a `signature`.
"""


def people() -> pa.Table:
    """Four thousand people of nobody's acquaintance."""
    return pa.table(
        {
            "age": [20 + i % 50 for i in range(4000)],
            "sex": ["female", "male"] * 2000,
            "smoker": ["yes", "no", "no", "no"] * 1000,
        }
    )


def certificate_page() -> str:
    """All fields of all mechanisms, with what changing them does."""
    sections, checks, claims = [INTRO], {}, {}
    with tempfile.TemporaryDirectory() as scratch:
        found = {}
        for mechanism, text in POLICIES.items():
            folder = Path(scratch) / mechanism
            policy = incrowd.Policy.from_text(f"incrowd: 1\ntitle: Example\nattributes:{text}")
            incrowd.release(people(), policy, folder=folder)
            checks[mechanism] = [check.name for check in _verified(folder).checks]
            claims[mechanism] = MECHANISMS[mechanism].claimed
            found[mechanism] = {path: (example, _noticed(folder, path)) for path, example in _fields(_read(folder))}
    sections.append(_common(found))
    for mechanism, fields in found.items():
        described = OWN[mechanism]
        own = {path: value for path, value in fields.items() if path not in COMMON}
        _same(set(own), set(described), mechanism)
        sections.append(
            f"\n## `mechanism: {mechanism}`\n\n| field | meaning | example | noticed |\n|---|---|---|---|\n"
        )
        sections.extend(_row(path, described[path], *own[path]) for path in described)
        sections.append(
            "\nTo be taken on the publisher's word:\n\n" + "".join(f"- {text}\n" for text in claims[mechanism])
        )
    sections.append(SIGNATURE)
    sections.append(_checks(checks))
    return "".join(sections)


def _common(found: Mapping[str, Mapping[Path_, tuple[Any, bool]]]) -> str:
    lines = ["\n## Fields of every certificate\n\n| field | meaning | noticed |\n|---|---|---|\n"]
    for path, meaning in COMMON.items():
        noticed = [f"`{mechanism}`" for mechanism, fields in found.items() if fields[path][1]]
        some = len(noticed) not in (0, len(found))
        said = f"for {', '.join(noticed)}" if some else _said(bool(noticed))
        lines.append(f"| `{'.'.join(path)}` | {meaning} | {said} |\n")
    return "".join(lines)


def _same(found: set[Path_], described: set[Path_], mechanism: str) -> None:
    if found != described:
        raise ValueError(
            f"{mechanism}: not described {sorted(found - described)}, not there {sorted(described - found)}"
        )


def _row(path: Path_, meaning: str, example: Any, noticed: bool) -> str:
    return f"| `{'.'.join(path)}` | {meaning} | {_short(example)} | {_said(noticed)} |\n"


def _said(noticed: bool) -> str:
    return "yes" if noticed else "no"


def _short(example: Any) -> str:
    if isinstance(example, float):
        return f"`{float(f'{example:.4g}')!r}`"
    if isinstance(example, Mapping) and example and len(json.dumps(example)) > 60:
        return ""
    return f"`{json.dumps(example, ensure_ascii=False)}`"


def _checks(checks: Mapping[str, list[str]]) -> str:
    shared = [name for name in next(iter(checks.values())) if all(name in names for names in checks.values())]
    lines = [CHECKS, "\nOf every release:\n\n", *(f"- {name}\n" for name in shared)]
    for mechanism, names in checks.items():
        lines.append(f"\nOf `{mechanism}` besides:\n\n")
        lines.extend(f"- {name}\n" for name in names if name not in shared)
    lines.append("\nIf the certificate is signed:\n\n- the signature is by the key that it names\n")
    lines.append("\nWith a public key:\n\n- the signature is by the key given\n")
    lines.append(RIGOROUS)
    return "".join(lines)


# --- finding the fields, and changing them --------------------------------------------------------------------------


def _fields(part: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Every field with its value; of a list of sections, those of the first."""
    whole = path in OPAQUE | BY_NAME | PARTS_OF_PRAM or path == COPIES
    if isinstance(part, Mapping) and not whole:
        for key in sorted(part):
            yield from _fields(part[key], (*path, key))
    elif isinstance(part, list) and part and isinstance(part[0], Mapping) and not whole:
        yield from _fields(part[0], path)
    else:
        yield path, part


def _noticed(folder: Path, path: Path_) -> bool:
    """Whether a verifier finds a release invalid in which one field was changed and nothing else."""
    place = folder / "certificate.json"
    whole = place.read_bytes()
    forged = copy.deepcopy(json.loads(whole))
    parent = forged
    for key in path[:-1]:
        parent = parent[key]
        parent = parent[0] if isinstance(parent, list) else parent
    parent[path[-1]] = _changed(parent[path[-1]])
    place.write_bytes(to_bytes(forged if path == ("digest",) else seal(forged)))
    try:
        return not _verified(folder).valid
    except incrowd.InputError:
        return True  # not a certificate at all
    finally:
        place.write_bytes(whole)


def _changed(value: Any) -> Any:
    """Something else of the same type, and as innocent as can be."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case float():
            return value * 0.5 if value else 0.5
        case str():
            return value + "x"
        case [dict() as first, *rest]:
            return [_changed(first), *rest]
        case list():
            return [*value, "x"]
        case dict() if value:
            key = sorted(value)[0]
            return {**value, key: _changed(value[key])}
        case dict():
            return {"x": 1}
    return {"copies": 2} if value is None else value


def _read(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "certificate.json").read_bytes())
    return content


def _verified(folder: Path) -> Any:
    return incrowd.verify(folder)
