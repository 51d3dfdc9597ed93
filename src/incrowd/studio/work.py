"""What is done in processes of their own. They tell how far they are through a pipe, and end when asked to."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from incrowd import api
from incrowd.core.errors import IncrowdError, InputError

_PAUSE = 0.05  # seconds between two reports

Tell = Callable[[str, float], None]


def main(pipe: Connection, kind: str, arguments: dict[str, Any], folder: str) -> None:
    """Run in the new process.

    Args:
        pipe: where progress and the result go.
        kind: one of `KINDS`.
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
        pipe.send(("result", KINDS[kind](arguments, Path(folder), tell)))
    except IncrowdError as error:
        pipe.send(("error", error.to_dict()))
    except SystemExit:
        raise
    except Exception as error:  # noqa: BLE001 - the last line of defence; only its kind is told, it might quote data
        pipe.send(("error", unexpected(type(error).__name__)))
    finally:
        pipe.close()


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
    draft = api.draft_policy(data, "-", progress=tell)
    return {
        "text": draft.text,
        "records": draft.profiles[0].records if draft.profiles else 0,
        "columns": [
            {
                "name": column.name,
                "type": column.type,
                "role": column.role,
                "why": column.why,
                "questions": list(column.questions),
                "values": [text for text, _ in profile.common[:200]],
                "bars": api.draw_column(profile),
            }
            for column, profile in zip(draft.columns, draft.profiles, strict=True)
        ],
        "decisions": [{"column": d.column, "question": d.question} for d in draft.decisions],
    }


def _columns(arguments: dict[str, Any], _: Path, tell: Tell) -> dict[str, Any]:
    tell("reading", 0.0)
    return {"columns": [{"name": n, "kind": k} for n, k in api.table_columns(arguments["data"])]}


def _release(arguments: dict[str, Any], _: Path, tell: Tell) -> dict[str, Any]:
    policy = api.policy_from_text(arguments["text"], arguments["base"])
    made = api.release(arguments["data"], policy, folder=arguments["folder"], progress=tell)
    return {"folder": arguments["folder"], "empty": not made.histogram.total}


def _audit(arguments: dict[str, Any], folder: Path, tell: Tell) -> dict[str, Any]:
    found = api.audit(
        arguments["data"],
        arguments["quasi"],
        arguments["sensitive"],
        arguments["adversaries"],
        sampling_rate=arguments["sampling_rate"],
        show_values=arguments["show_values"],
        progress=tell,
    )
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
    }


def _count(arguments: dict[str, Any], _: Path, tell: Tell) -> dict[str, Any]:
    """How often the distinct rows of a table occur, as pairs of a count and how many rows have it."""
    from collections import Counter

    tell("reading", 0.0)
    if arguments["counts"]:
        rows = api.read_counts(arguments["data"][0])
    else:
        rows = api.count_rows(arguments["data"], arguments["columns"] or None)
    sizes = Counter(rows.tolist())
    return {"sizes": sorted(sizes.items()), "records": int(rows.sum()), "distinct": len(rows)}


def _verify(arguments: dict[str, Any], _: Path, tell: Tell) -> dict[str, Any]:
    tell("checking", 0.0)
    found = api.verify(arguments["folder"])
    return {
        "valid": found.valid,
        "checks": [{"name": c.name, "holds": c.holds, "detail": c.detail} for c in found.checks],
        "claimed": list(found.claimed),
    }


def _figures(arguments: dict[str, Any], folder: Path, tell: Tell) -> dict[str, Any]:
    """The papers' own figures, drawn again beside the exact values."""
    drawn = api.gallery(folder, only=arguments["only"], progress=lambda _, part: tell("drawing", part))
    (folder / "index.html").rename(folder / "report.html")
    return {"figures": [figure.title for figure in drawn]}


KINDS: dict[str, Callable[[dict[str, Any], Path, Tell], dict[str, Any]]] = {
    "draft": _draft,
    "columns": _columns,
    "release": _release,
    "audit": _audit,
    "count": _count,
    "figures": _figures,
    "verify": _verify,
}
