"""What is done in processes of their own. They tell how far they are through a pipe, and end when asked to."""

from __future__ import annotations

import math
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from incrowd import api
from incrowd.core.errors import IncrowdError, InputError

_PAUSE = 0.05  # seconds between two reports
_MOST_ESTIMATES, _MOST_LABELS = 500, 200  # that a page shows
_FORGOTTEN = 1800.0  # seconds in which nothing is asked of a table

Tell = Callable[[str, float], None]
Answer = Callable[[dict[str, Any]], Any]


def main(pipe: Connection, kind: str, arguments: dict[str, Any], folder: str) -> None:
    """Run in the new process.

    Args:
        pipe: where progress and the result go.
        kind: one of `KINDS`, or of `KEPT`.
        arguments: what it needs.
        folder: for its files; `scratch` in it is removed afterwards, come what may.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the studio decides
    signal.signal(signal.SIGTERM, _stop)
    scratch = Path(folder) / "scratch"
    scratch.mkdir(mode=0o700)
    tempfile.tempdir = os.environ["TMPDIR"] = str(scratch)
    # What libraries print might quote data.
    sys.stdout = sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the end
    last: tuple[float, str] = (0.0, "")
    one_at_a_time = threading.Lock()  # engines tell from threads of their own

    def tell(what: str, part: float) -> None:
        nonlocal last
        with one_at_a_time:
            now = time.monotonic()
            if what != last[1] or now - last[0] > _PAUSE:
                last = (now, what)
                pipe.send(("progress", what, float(part)))

    try:
        if kind in KEPT:
            _answer(pipe, *KEPT[kind](arguments, tell))
        else:
            pipe.send(("result", KINDS[kind](arguments, Path(folder), tell)))
    except IncrowdError as error:
        pipe.send(("error", error.to_dict()))
    except SystemExit:
        raise
    except Exception as error:  # noqa: BLE001 - the last line of defence; only its kind is told, it might quote data
        pipe.send(("error", unexpected(type(error).__name__)))
    finally:
        pipe.close()


def _answer(pipe: Connection, first: dict[str, Any], answer: Answer) -> None:
    """Keep a table, and answer what is asked of it, until nothing has been asked for long."""
    pipe.send(("kept", first))
    while pipe.poll(_FORGOTTEN):
        question = pipe.recv()
        try:
            pipe.send(("answer", answer(question)))
        except IncrowdError as error:
            pipe.send(("refused", error.to_dict()))
        except (EOFError, OSError):
            raise
        except Exception as error:  # noqa: BLE001 - as above
            pipe.send(("refused", unexpected(type(error).__name__)))


def refused(said: dict[str, Any]) -> IncrowdError:
    """What another process has refused, as the error that it was there."""
    return IncrowdError(said["message"], code=said["code"], remedy=said["remedy"], details=said["details"])


def unexpected(what: str) -> dict[str, Any]:
    """A bug, in the one shape of errors."""
    return IncrowdError(
        f"An unexpected {what} stopped the work. This is a bug.",
        code="internal",
        remedy="Please report it. A folder that was written is complete.",
    ).to_dict()


def _stop(*_: object) -> None:
    sys.exit(1)


# --- the kinds of work ------------------------------------------------------------------------------------------------


def _draft(arguments: dict[str, Any], _: Path, tell: Tell) -> dict[str, Any]:
    """What the columns hold, and a draft of a policy."""
    names = [Path(name) for name in arguments["data"]]
    os.chdir(names[0].parent)  # the draft names the table as it is called in its folder
    data = arguments["pattern"] or names[0].name
    found = {str(path.resolve()) for path in api.find_files([data])}
    if found != set(arguments["data"]):  # links: what the pattern finds here is not what was looked through
        raise InputError(
            "These files lie in several folders.", code="path-outside", remedy="Choose files of one folder."
        )
    draft = api.draft_policy(data, "-", progress=tell, **arguments["reading"])
    return {
        "text": api.without_preamble(draft.text),
        "records": draft.profiles[0].records if draft.profiles else 0,
        "columns": [
            {
                "name": column.name,
                "type": column.type,
                "role": column.role,
                "why": column.why,
                "questions": list(column.questions),
                "values": [text for text, _ in profile.common[:200]],
                "distinct": profile.distinct,
                "counted": profile.counted,
                "missing": profile.missing,
                "ranges": api.column_ranges(profile),
                "shape": api.draw_shape(profile),
                "bars": api.draw_column(profile),
            }
            for column, profile in zip(draft.columns, draft.profiles, strict=True)
        ],
        "people": _people(draft, arguments["data"], {k: v for k, v in arguments["reading"].items() if k != "codebook"}),
        "decisions": [{"column": d.column, "question": d.question} for d in draft.decisions],
    }


def _people(draft: api.Draft, data: list[str], reading: dict[str, Any]) -> dict[str, Any] | None:
    """Whose the rows seem to be, and how many people have how many of them."""
    if draft.people is None:
        return None
    found = api.rows_of_people(data, [draft.people.column], **reading) if draft.people.lines else ()
    return {"column": draft.people.column, "found": draft.people.found, "sizes": found}


def _rows(arguments: dict[str, Any], _: Path, tell: Tell) -> dict[str, Any]:
    """How many people have how many rows, if some columns say whose a row is."""
    tell("reading", 0.0)
    return {"sizes": api.rows_of_people(arguments["data"], arguments["columns"], **arguments["reading"])}


def _example(arguments: dict[str, Any], _: Path, tell: Tell) -> dict[str, Any]:
    """The files of an example, in the first of the folders."""
    return {"files": [str(path) for path in api.make_example(arguments["name"], arguments["folder"], tell)]}


def _columns(arguments: dict[str, Any], _: Path, tell: Tell) -> dict[str, Any]:
    tell("reading", 0.0)
    return {
        "columns": [{"name": n, "kind": k} for n, k in api.table_columns(arguments["data"], **arguments["reading"])]
    }


def _release(arguments: dict[str, Any], _: Path, tell: Tell) -> dict[str, Any]:
    policy = api.policy_from_text(arguments["text"], arguments["base"])
    chosen = {name: arguments[name] for name in ("copies", "folder", "new_ledger", "sign_with", "output")}
    made = api.release_copies(arguments["data"], policy, **chosen, progress=tell)
    folders = [str(folder) for folder in api.release_folders(arguments["folder"], arguments["copies"])]
    return {"folder": folders[0], "folders": folders, "account": made[0].account}


def _rehearse(arguments: dict[str, Any], folder: Path, tell: Tell) -> dict[str, Any]:
    """What would come out, which is charged to no ledger and written to the studio's own folder alone."""
    policy = api.policy_from_text(arguments["text"], arguments["base"])
    made = api.release_copies(arguments["data"], policy, copies=arguments["copies"], rehearse=True, progress=tell)[0]
    (folder / "report.html").write_bytes(made.internal["report.html"])
    return {
        "promise": made.certified.promise.in_words,
        "ledger": None if made.foreseen is None else _finite(asdict(made.foreseen)),
        "empty": made.empty,
        "verdict": list(made.verdict.lines),
        "for_you_only": [line for line in (made.insight.headline, *made.insight.lines) if line],
        "warnings": [{"text": w.text, "code": w.code} for w in made.warnings],
        "columns": [
            {"name": c.name, "shown": c.shown, "occurring": c.occurring_of, "hidden": c.hidden}
            for c in made.verdict.columns
        ],
    }


def _finite(content: dict[str, Any]) -> dict[str, Any]:
    """Numbers that JSON has; none for what is infinite."""

    def plain(value: Any) -> Any:
        if isinstance(value, tuple):
            return [plain(one) for one in value]
        return None if isinstance(value, float) and math.isinf(value) else value

    return {key: plain(value) for key, value in content.items()}


def _compare(arguments: dict[str, Any], _: Path, tell: Tell) -> dict[str, Any]:
    """The mechanisms on one workload. For the publisher's eyes only."""
    policy = api.policy_from_text(arguments["text"], arguments["base"])
    found = api.compare(policy, arguments["data"], progress=tell)
    return {
        "chart": api.draw_compared(found),
        "records": found.records,
        "delta": found.delta,
        "contenders": [
            {"mechanism": one.mechanism, "epsilon": one.epsilon, "settings": one.settings, "absolute": one.absolute,
             "relative": one.relative, "refused": one.refused}
            for one in found.contenders
        ],
        "notes": [found.units, *found.differences],
    }  # fmt: skip


def _audit(arguments: dict[str, Any], folder: Path, tell: Tell) -> dict[str, Any]:
    found = api.audit(arguments["data"], **arguments["options"], progress=tell, **arguments["reading"])
    required = found.require(*arguments["require"]) if arguments["require"] else ()
    api.save_audit(found, folder / "report.html")
    said = found.to_dict()
    risks = said["risks"]
    return {
        "records": found.records,
        "groups": found.groups,
        "k": found.k,
        "l": found.l_diversity,
        "t": found.t_closeness,
        "alone": risks["sample_uniques"],
        "highest": risks["prosecutor"]["highest"],
        "marketer": risks["marketer"],
        "belief_ratio": [{"adversary": name, "ratio": str(ratio)} for name, ratio in found.belief_ratio.items()],
        "columns": [
            {"name": c["name"], "uniques_without": c["uniques_without"], "k_without": c["k_without"]}
            for c in said["contributions"]
        ],
        "notes": list(found.notes),
        "people": None if found.people is None else {"people": found.people.people, "k": found.people.k},
        "required": [_finite(asdict(outcome)) for outcome in required],
    }


def _count(arguments: dict[str, Any], _: Path, tell: Tell) -> dict[str, Any]:
    """How often the distinct rows of a table occur, as pairs of a count and how many rows have it."""
    from collections import Counter

    tell("reading", 0.0)
    how = arguments["reading"]
    if arguments["counts"]:
        rows = api.read_counts(arguments["data"][0], **{key: how[key] for key in how if key != "decimal"})
    else:
        rows = api.count_rows(arguments["data"], arguments["columns"] or None, **how)
    sizes = Counter(rows.tolist())
    return {"sizes": sorted(sizes.items()), "records": int(rows.sum()), "distinct": len(rows)}


def _verify(arguments: dict[str, Any], _: Path, tell: Tell) -> dict[str, Any]:
    tell("checking", 0.0)
    try:
        found = api.verify(arguments["folder"], arguments["key"], rigorous=arguments["rigorous"])
    finally:
        if arguments["remove"]:
            shutil.rmtree(arguments["folder"], ignore_errors=True)
    return {
        "valid": found.valid,
        "signature": found.signature,
        "checks": [{"name": c.name, "holds": c.holds, "detail": c.detail} for c in found.checks],
        "claimed": list(found.claimed),
    }


def _export(arguments: dict[str, Any], folder: Path, tell: Tell) -> dict[str, Any]:
    """A release's table in another format."""
    tell("checking", 0.0)
    opened = api.open_release(arguments["folder"])
    tell("writing", 0.5)
    return {"file": opened.write(arguments["output"], folder).name}


def _combine(arguments: dict[str, Any], folder: Path, tell: Tell) -> dict[str, Any]:
    """Another synthetic table from a release's views."""
    tell("checking", 0.0)
    opened = api.open_release(arguments["folder"])
    tell("drawing", 0.3)
    made = opened.write_again(arguments["output"], folder, rows=arguments["rows"], seed=arguments["seed"])
    return {"file": made.name}


def _publish_collected(arguments: dict[str, Any], _: Path, tell: Tell) -> dict[str, Any]:
    """Close a collection, and publish what came."""
    tell("drawing", 0.0)
    api.publish_collected(
        arguments["store"], arguments["folder"], fewer=arguments["fewer"], sign_with=arguments["sign_with"]
    )
    return {"folder": arguments["folder"]}


def _figures(arguments: dict[str, Any], folder: Path, tell: Tell) -> dict[str, Any]:
    """The papers' own figures, drawn again beside the exact values."""
    drawn = api.gallery(folder, only=arguments["only"], progress=lambda _, part: tell("drawing", part))
    (folder / "index.html").rename(folder / "report.html")
    return {"figures": [figure.title for figure in drawn]}


KINDS: dict[str, Callable[[dict[str, Any], Path, Tell], dict[str, Any]]] = {
    "draft": _draft,
    "columns": _columns,
    "rows": _rows,
    "example": _example,
    "release": _release,
    "rehearse": _rehearse,
    "audit": _audit,
    "collected": _publish_collected,
    "combine": _combine,
    "compare": _compare,
    "count": _count,
    "export": _export,
    "figures": _figures,
    "verify": _verify,
}

# --- tables that are kept ---------------------------------------------------------------------------------------------


def _explore(arguments: dict[str, Any], tell: Tell) -> tuple[dict[str, Any], Answer]:
    """The raw table, counted: what policies would make of it. Internal, and void, all of it."""
    base = arguments["base"]
    table = api.explore(api.policy_from_text(arguments["text"], base), arguments["data"], progress=tell)
    known: dict[str, Any] = {}

    def answer(question: dict[str, Any]) -> Any:
        text = question["text"]
        policy = api.policy_from_text(text, base)
        if question["ask"] == "look":
            return table.look(policy).to_dict()
        if question["ask"] == "mechanism":
            return _edits(table.by_mechanism(policy, question["mechanism"]))
        if known.get("text") != text:
            known.update(text=text, changes=table.around(policy))
        changes = known["changes"]
        if question["number"] >= len(changes):
            return {"of": len(changes), "words": "", "score": None}
        change = changes[question["number"]]
        found = table.try_out(policy, change)
        return {
            "of": len(changes),
            "words": change.words,
            "mechanism": found.mechanism,
            "epsilon": found.epsilon,
            "score": found.score if found.scores else None,
            "changes": _edits(change.places),
        }

    return {"records": table.table.total, "control": list(table.control)}, answer


def _browse(arguments: dict[str, Any], tell: Tell) -> tuple[dict[str, Any], Answer]:
    """A release that was checked and read. What is asked of it is public."""
    tell("checking", 0.0)
    opened = api.open_release(arguments["folder"])

    def answer(question: dict[str, Any]) -> Any:
        if question["ask"] == "rows":
            by, query = question["by"], question["query"]
            return asdict(opened.groups(by, **query) if by else opened.rows(**query))
        found = opened.estimate(question["by"], **question["options"])
        return {
            "chart": api.without_style(found.plot().svg),
            "tables": found.tables(_MOST_ESTIMATES),
            "words": len(found.by),
            "more": max(0, len(found.rows) - _MOST_ESTIMATES),
            "notes": [*found.remarks(), *found.notes],
        }

    promise = opened.certificate.promise
    first = {
        "promise": promise.in_words,
        "void": promise.void,
        "unit": opened.unit,
        "has_table": bool(opened.table.columns),
        "options": sorted(opened.mechanism.estimate_options),
        "draws_again": opened.draws_again,
        "formats": api.output_formats(),
        "columns": [
            {"name": c.name, "labels": [text for text in c.labels if text is not None][:_MOST_LABELS]}
            for c in opened.certificate.columns
        ],
    }
    return first, answer


def _edits(places: Any) -> list[dict[str, Any]]:
    """Changes of a policy as edits of its text."""
    return [{"place": list(place), "content": _written(content)} for place, content in places.items()]


def _written(content: Any) -> Any:
    """Numbers as a policy writes them, to the last digit."""
    if isinstance(content, dict):
        return {key: _written(value) for key, value in content.items()}
    return str(content) if isinstance(content, int | float) and not isinstance(content, bool) else content


KEPT: dict[str, Callable[[dict[str, Any], Tell], tuple[dict[str, Any], Answer]]] = {
    "explore": _explore,
    "browse": _browse,
}
"""Each gives what is to be seen first, and what answers questions. Only what a page shows leaves the process."""
