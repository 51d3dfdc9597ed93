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
from typing import Any, TypeVar, get_args, get_origin

import pyarrow as pa
from pydantic import BaseModel

import incrowd
from incrowd.core.signing import seal, to_bytes
from incrowd.mechanisms.certificate import Certificate, StatedMechanism, StatedPromise
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
    "views": _PEOPLE % 1
    + """release: {mechanism: views, epsilon: 1, delta: 1e-6, by: noise, already_sampled: true, beta: 0.1}
ledger: {path: example.ledger, dataset: example, epsilon: 1, delta: 1e-6}
""",
}
COPIES = ("promise", "together")

OPAQUE = {("files",), ("software",), COPIES} | {("promise", "parts", part) for part in ("linking", "local", "central")}
"""Fields that are shown as a whole, though they have parts."""

INTRO = """\
# The certificate

Every release has a `certificate.json`: what was promised, on what grounds, and for which file. It holds what the
guarantee covers and nothing else that was read off the data. [Reading a certificate](reading-a-certificate.md) walks
through one; this page lists the fields.

The file is *canonical JSON*: UTF-8, keys sorted, no blanks, one newline at its end, no NaN or infinity. So there is one
way to write it, and a change anywhere shows in its `digest`. Fields that are not listed here are not allowed: they
could tell what no promise covers. `incrowd schema certificate` prints the JSON Schema. In Python, `Release.certificate`
is the same document as a dictionary.

Beside it stands `datapackage.json`: what data catalogues read, as a
[Frictionless Data Package](https://datapackage.org). It lists the files with their columns, titles and labels, and
repeats promise and assumptions. It is made of the certificate alone, and `incrowd verify` makes it once more.

The column *noticed* says what `incrowd verify` does if this field alone is changed and the certificate is sealed again,
as a forger would do: *yes*, it finds the release invalid; *no*, it cannot know, and the field is the publisher's word.
Whether the publisher is who they say is a matter of the signature.

The tables below are written from the models that certificates are made and read with, the examples are real.
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
            policy = incrowd.Policy.from_text(f"incrowd: 1\ntitle: Example\nattributes:{text}", base=scratch)
            incrowd.release(people(), policy, folder=folder, new_ledger=policy.ledger is not None)
            checks[mechanism] = [check.name for check in _verified(folder).checks]
            claims[mechanism] = MECHANISMS[mechanism].claimed
            content = _read(folder)
            found[mechanism] = {
                path: (_example(content, path), _noticed(folder, path))
                for path in described(MECHANISMS[mechanism].certificate)
                if _there(content, path)
            }
    common = described(Certificate[StatedPromise, StatedMechanism])
    sections.append(_common(common, found))
    for mechanism, fields in found.items():
        own = {path: text for path, text in described(MECHANISMS[mechanism].certificate).items() if path not in common}
        sections.append(
            f"\n## `mechanism: {mechanism}`\n\n| field | meaning | example | noticed |\n|---|---|---|---|\n"
        )
        sections.extend(_row(path, text, *fields[path]) for path, text in own.items() if path in fields)
        sections.append(
            "\nTo be taken on the publisher's word:\n\n" + "".join(f"- {text}\n" for text in claims[mechanism])
        )
    sections.append(SIGNATURE)
    sections.append(_checks(checks))
    return "".join(sections)


def described(model: type[BaseModel], path: Path_ = ()) -> dict[Path_, str]:
    """What each field means, as its model says; where fields have parts, the parts'."""
    found: dict[Path_, str] = {}
    for name, field in model.model_fields.items():
        place = (*path, field.serialization_alias or name)
        parts = [] if place in OPAQUE or name == "signature" else list(_models(field.annotation))
        for part in parts:
            for inner, text in described(part, place).items():
                found.setdefault(inner, text)
        if not parts and name != "signature":
            found[place] = str(field.description)
    return found


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models in a type, but for those that stand under names of columns or values."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif isinstance(annotation, TypeVar):
        yield from _models(annotation.__bound__)
    elif get_origin(annotation) is not dict:
        for inner in get_args(annotation):
            yield from _models(inner)


def _common(common: Mapping[Path_, str], found: Mapping[str, Mapping[Path_, tuple[Any, bool]]]) -> str:
    lines = ["\n## Fields of every certificate\n\n| field | meaning | noticed |\n|---|---|---|\n"]
    for path, meaning in common.items():
        noticed = [f"`{mechanism}`" for mechanism, fields in found.items() if fields[path][1]]
        some = len(noticed) not in (0, len(found))
        said = f"for {', '.join(noticed)}" if some else _said(bool(noticed))
        lines.append(f"| `{'.'.join(path)}` | {meaning} | {said} |\n")
    return "".join(lines)


def _row(path: Path_, meaning: str, example: Any, noticed: bool) -> str:
    words = meaning.replace("|", r"\|")
    return f"| `{'.'.join(path)}` | {words} | {_short(example)} | {_said(noticed)} |\n"


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


def _example(part: Any, path: Path_) -> Any:
    """What stands at a place; of a list of sections, in the first."""
    for key in path:
        part = (part[0] if isinstance(part, list) else part)[key]
    return part


def _there(part: Any, path: Path_) -> bool:
    try:
        _example(part, path)
    except (KeyError, IndexError):
        return False
    return True


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
