"""Changing one thing in the text of a policy and nothing else: comments, order and spelling stay as they were."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

import yaml

from incrowd.core.errors import PolicyError
from incrowd.policy.formats import Dumper
from incrowd.policy.texts import MARK, MARKED, parse

_WIDTH = 110


def outline(text: str) -> dict[str, Any]:
    """What a policy says, as mappings, lists and texts, whether or not it makes sense.

    Raises:
        PolicyError: it is not YAML.
    """
    content = parse(text).content
    return content if isinstance(content, dict) else {}


def edit(text: str, place: Sequence[str], content: Any) -> str:
    """The text with the key at a place given this content: added if it is not there, removed if the content is None.

    Where a mapping is given for a mapping, only the keys that differ are written anew, so that the comments of the
    others stay. A text whose style leaves no room for such care is written anew as a whole.
    """
    here = tuple(place)
    before = outline(text)
    wanted = _changed(before, here, content)
    if wanted == before and _alike(_at(before, here), content):
        return text
    try:
        careful = _careful(text, here, content)
    except yaml.YAMLError:  # of what would have come out
        careful = None
    if careful is not None and _says(careful, wanted) and _alike(_at(outline(careful), here), content):
        return careful
    return _dump(wanted)


def confirm(text: str, name: str) -> str:
    """The text without the marks on an attribute that ask a person to confirm it; those outside of all for "".

    Raises:
        PolicyError: it is not YAML.
    """
    said = outline(text)
    lines = text.splitlines(keepends=True)
    for mark, owner in _owned_marks(text):
        if owner == name:
            line = lines[mark.line - 1]
            kept = line[: MARKED.search(line).start("mark")].rstrip()  # type: ignore[union-attr]
            lines[mark.line - 1] = kept and kept + line[len(line.rstrip("\r\n")) :]
    cleared = "".join(lines)
    return cleared if _says(cleared, said) else text


def unconfirmed(text: str) -> dict[str, list[str]]:
    """What a person is still asked to confirm, by attribute; what is outside of all of them under ""."""
    asked: dict[str, list[str]] = {}
    for mark, owner in _owned_marks(text):
        note = f"{mark.path}: {mark.text}" if mark.path and not owner else mark.text
        asked.setdefault(owner, []).append(f"{MARK} {note}")
    return asked


def _owned_marks(text: str) -> list[tuple[Any, str]]:
    """Each mark with the attribute in whose lines it stands, or with ""."""
    document = parse(text)
    content = document.content if document.marks and isinstance(document.content, dict) else {}
    spans = {name: _span(text, ("attributes", name)) for name in content.get("attributes") or {}}

    def owner(line: int) -> str:
        return next((name for name, span in spans.items() if span and span[0] < line <= span[1]), "")

    return [(mark, owner(mark.line or 0)) for mark in document.marks]


# --- content ----------------------------------------------------------------------------------------------------------


def _changed(whole: dict[str, Any], place: tuple[str, ...], content: Any) -> dict[str, Any]:
    changed = copy.deepcopy(whole)
    at = changed
    for part in place[:-1]:
        if not isinstance(at.get(part), dict):
            at[part] = {}
        at = at[part]
    if content is None:
        at.pop(place[-1], None)
    else:
        at[place[-1]] = content
    return changed


def _says(text: str, wanted: dict[str, Any]) -> bool:
    try:
        return outline(text) == wanted
    except PolicyError:
        return False


def _alike(found: Any, content: Any) -> bool:
    """Whether both say the same: the keys of a section in any order, but what is below them in the same one."""
    if isinstance(found, dict) and isinstance(content, dict):
        return found.keys() == content.keys() and all(json.dumps(found[k]) == json.dumps(content[k]) for k in found)
    return json.dumps(found) == json.dumps(content)


# --- text -------------------------------------------------------------------------------------------------------------


def _careful(text: str, place: tuple[str, ...], content: Any) -> str | None:
    """The edited text, or None where its style does not allow it."""
    found = _span(text, place)
    if found is None:
        return None if content is None else _inserted(text, place, content)
    node = _node(text, place)
    if isinstance(content, dict) and content and isinstance(node, yaml.MappingNode) and not node.flow_style:
        now = _at(outline(text), place)
        edited: str | None = text
        for key in [*now, *(key for key in content if key not in now)]:
            if edited is not None and (key not in content or key not in now or not _alike(now[key], content[key])):
                edited = _replaced(edited, (*place, key), content.get(key))
        return edited
    return _replaced(text, place, content)


def _replaced(text: str, place: tuple[str, ...], content: Any) -> str | None:
    """One key written anew, with all below it."""
    found = _span(text, place)
    if found is None:
        return None if content is None else _inserted(text, place, content)
    first, last, indent = found
    lines = text.splitlines(keepends=True)
    fresh = [] if content is None else _lines(place[-1], content, indent)
    return "".join([*lines[:first], *fresh, *lines[last:]])


def _inserted(text: str, place: tuple[str, ...], content: Any) -> str | None:
    """A new key at the end of its mapping."""
    above = _node(text, place[:-1])
    if above is None and len(place) == 1:  # there is nothing yet
        return None
    if above is None:
        return _inserted(text, place[:-1], {place[-1]: content})
    if not isinstance(above, yaml.MappingNode) or above.flow_style or not above.value:
        return None
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    end = _last_line(above) + 1
    apart = ["\n"] if len(place) == 1 else []
    fresh = _lines(place[-1], content, above.value[0][0].start_mark.column)
    return "".join([*lines[:end], *apart, *fresh, *lines[end:]])


def _span(text: str, place: tuple[str, ...]) -> tuple[int, int, int] | None:
    """The lines of a key with all below it, and how far it is indented; None in the flow style, or if it is absent."""
    above = _node(text, place[:-1])
    if not isinstance(above, yaml.MappingNode) or above.flow_style:
        return None
    for key, value in above.value:
        if key.value == place[-1]:
            return key.start_mark.line, max(_last_line(value), key.end_mark.line) + 1, key.start_mark.column
    return None


def _node(text: str, place: tuple[str, ...]) -> yaml.Node | None:
    node: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    for part in place:
        if not isinstance(node, yaml.MappingNode):
            return None
        node = next((value for key, value in node.value if key.value == part), None)
    return node


def _last_line(node: yaml.Node) -> int:
    """The last line that holds something of a node."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return max(map(_last_line, last)) if isinstance(last, tuple) else _last_line(last)
    end = node.end_mark
    return end.line - 1 if end.column == 0 and end.line > node.start_mark.line else end.line


def _at(content: Any, place: tuple[str, ...]) -> Any:
    """What stands at a place; None if nothing does."""
    for part in place:
        content = content.get(part) if isinstance(content, dict) else None
    return content


def _lines(key: str, content: Any, indent: int) -> list[str]:
    margin, name = " " * indent, _dump(key).splitlines()[0]
    below = _dump(content).removesuffix("...\n").splitlines()
    if isinstance(content, str) or (below[0][0] in "[{" and sum(map(len, below)) < _WIDTH):
        return [f"{margin}{name}: {' '.join(line.strip() for line in below)}\n"]
    return [f"{margin}{name}:\n", *(f"{margin}  {line}\n" for line in below)]


def _dump(content: Any) -> str:
    return yaml.dump(
        content, Dumper=_TextDumper, sort_keys=False, allow_unicode=True, default_flow_style=None, width=_WIDTH
    )


class _TextDumper(Dumper):
    """Writes texts as they are. In a policy every scalar is a text until its key says otherwise."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own way
        first: [(tag, pattern) for tag, pattern in known if tag == "tag:yaml.org,2002:null"]
        for first, known in yaml.SafeDumper.yaml_implicit_resolvers.items()
    }
