"""What every verb shares: the JSON switch, the one shape of errors, and exit codes."""

from __future__ import annotations

import io
import json
import math
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, is_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from incrowd.core.errors import DataError, IncrowdError, notes_of
from incrowd.core.files import named

if TYPE_CHECKING:
    from rich.console import Console

DONE, BUG, BAD_INPUT, FAILED = 0, 1, 2, 3

_QUIET, _NO_PROGRESS = "incrowd.quiet", "incrowd.no-progress"


def _asked(name: str) -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(name))


def _switch(name: str, *flags: str, says: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An option that no verb sees: what it sets is asked for with `_asked`, and can be set by the environment."""

    def note(context: click.Context, _parameter: click.Parameter, given: bool) -> None:
        context.meta[name] = given

    variable = name.upper().replace(".", "_").replace("-", "_")
    return click.option(
        *flags, is_flag=True, expose_value=False, callback=note, envvar=variable, show_envvar=True, help=says
    )


def json_option(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a verb the options of every verb: `--json`, as `as_json`, `--quiet` and `--no-progress`."""
    quiet = _switch(_QUIET, "--quiet", "-q", says="Print errors and warnings only.")
    still = _switch(_NO_PROGRESS, "--no-progress", says="Draw no progress bar.")
    as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
    return as_json(quiet(still(verb)))


class FileName(click.Path):
    """A path that some file or folder could have."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(os.fspath(named(value)), param, ctx)


class FolderName(FileName):
    """A path that a new folder could have."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "-":
            self.fail(
                "a folder cannot be written to standard output; name a folder (./- if that is its name).", param, ctx
            )
        return super().convert(value, param, ctx)


class PolicyFile(FileName):
    """The file of a policy, or the policy that comes on standard input, if `-` stands there."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value != "-":
            return super().convert(value, param, ctx)
        from incrowd.api import pages

        return pages.policy_from_text(standard_input().read().decode("utf-8", errors="replace"), Path.cwd())


def standard_input() -> BinaryIO:
    """Standard input, which can be read once only."""
    meta = click.get_current_context().find_root().meta
    if meta.setdefault("incrowd.stdin", False):
        raise click.UsageError("Standard input (-) can be either the policy or the table, not both.")
    meta["incrowd.stdin"] = True
    return sys.stdin.buffer


file_name, folder_name, policy_file = FileName(dir_okay=False), FolderName(file_okay=False), PolicyFile(dir_okay=False)
release_name = FolderName()  # that a file is no release is said by what looks for a certificate

sign_option = click.option(
    "--sign-with",
    type=file_name,
    envvar="INCROWD_SIGN_WITH",
    show_envvar=True,
    help="A secret Ed25519 key (PEM) to sign with.",
)


def run(command: click.Command, arguments: list[str]) -> int:
    """Run a command; turn whatever happens into one clear message and an exit code.

    All that is printed has left the process when this returns, or the exit code says that it has not.
    """
    try:
        code = _outcome(command, arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
    except OutputLostError as error:
        _give_up_output()
        if error.reader_left:  # `| head`: not an error of ours
            return DONE
        lost = {
            "code": "output-unwritable",
            "message": f"Standard output cannot be written: {error}.",
            "remedy": "Only what should have been printed is lost. Files and folders that were written are complete, "
            "and what was charged stays charged.",
            "details": {},
        }
        report_error(lost, as_json=False)
        return BAD_INPUT
    return code


def _outcome(command: click.Command, arguments: list[str]) -> int:
    as_json = "--json" in arguments
    try:
        result = _carried_out(command, arguments)
    except IncrowdError as error:
        report_error(error.to_dict(), as_json=as_json)
        return error.exit_code
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "incrowd"
        usage = {
            "code": "usage",
            "message": error.format_message(),
            "remedy": f"See `{where} --help`.",
            "details": {},
        }
        report_error(usage, as_json=as_json)
        return BAD_INPUT
    except click.ClickException as error:
        report_error({"code": "usage", "message": error.format_message(), "remedy": "", "details": {}}, as_json=as_json)
        return BAD_INPUT
    except (click.Abort, KeyboardInterrupt) as stop:
        cause = stop.__cause__ or stop  # click has put its own exception around it
        click.echo(" ".join(("incrowd: stopped.", *(notes_of(cause) or ("Nothing was written.",)))), err=True)
        return 128 + getattr(cause, "signal", signal.SIGINT)
    except OutputLostError:
        raise
    except Exception as error:  # noqa: BLE001 - the last line of defence: no traceback reaches a user unasked
        if os.environ.get("INCROWD_DEBUG"):
            traceback.print_exc()
        if (lacking := _lacking_memory(error)) is not None:
            said = lacking.to_dict()
            said["message"] = " ".join((lacking.message, *notes_of(error)))
            report_error(said, as_json=as_json)
            return BAD_INPUT
        bug = {
            "code": "internal",
            # Only the kind of the exception: its text might quote data.
            "message": " ".join(
                (f"An unexpected {type(error).__name__} stopped incrowd. This is a bug.", *notes_of(error))
            ),
            "remedy": "Set INCROWD_DEBUG=1 for the details, and report it. A folder that was written is complete.",
            "details": {},
        }
        report_error(bug, as_json=as_json)
        return BUG
    return result if isinstance(result, int) else DONE


def _carried_out(command: click.Command, arguments: list[str]) -> Any:
    """What a command returns. If a signal came, it is why the command ended, whatever a library made of it: DuckDB
    raises an error of its own where a handler has raised something else.
    """
    _came.clear()
    try:
        return command.main(arguments, prog_name="incrowd", standalone_mode=False)
    except (OutputLostError, click.Abort):
        raise
    except Exception as error:
        if not _came:
            raise
        stopped = Stopped(_came[0])
        for note in notes_of(error):
            stopped.add_note(note)
        raise stopped from None


def _lacking_memory(error: Exception) -> IncrowdError | None:
    """What to say if memory is what an error is about; libraries that lack it fail to load with errors of any kind."""
    from incrowd.core.machine import require_address_space

    try:
        require_address_space()
    except IncrowdError as lacking:
        return lacking
    if not isinstance(error, MemoryError):
        return None
    return DataError(
        "There is not enough memory for this.",
        code="data-memory",
        remedy="Give this process more, or publish fewer or coarser columns. A folder that was written is complete.",
    )


def _give_up_output() -> None:
    """Send what is still to be printed nowhere, so that the interpreter does not complain when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


class OutputLostError(Exception):
    """Standard output does not take what is printed: why, or that its reader went away."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error.strerror or type(error).__name__)
        self.reader_left = isinstance(error, BrokenPipeError)


class Output(io.TextIOWrapper):
    """Standard output that prints any text, and says of itself when it fails."""

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError as error:
            raise OutputLostError(error) from None

    def flush(self) -> None:
        """Have all that was printed leave the process."""
        try:
            super().flush()
        except OSError as error:
            raise OutputLostError(error) from None


def open_streams() -> None:
    """Standard streams that are there: a closed one leads nowhere, and not into the next file that is opened."""
    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    out = sys.stdout
    if type(out) is io.TextIOWrapper:
        sys.stdout = Output(
            out.detach(), encoding=out.encoding, errors="backslashreplace", line_buffering=out.line_buffering
        )


class Stopped(KeyboardInterrupt):
    """A signal that ends a command as Ctrl-C does: what was begun is cleared away, and what was charged is said."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = number


_came: list[int] = []  # signals that came while a command ran


def stop_on_signals() -> None:
    """Let the signals by which a system ends a program end a command properly; those that are ignored stay so."""

    def stop(number: int, _frame: object) -> None:
        _came.append(number)
        raise Stopped(number)

    for name in ("SIGTERM", "SIGHUP", "SIGINT"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, stop)


def report_error(error: dict[str, Any], *, as_json: bool) -> None:
    """One error, one shape: JSON on standard output if asked for, and a readable line on standard error."""
    if as_json:
        click.echo(json.dumps({"error": error}, ensure_ascii=False))
    style = partial(click.secho, err=True, color=_colored())
    with suppress(OSError):  # there is nobody left to tell
        style("error: ", fg="red", bold=True, nl=False)
        click.echo(error["message"], err=True)
        if error["remedy"]:
            click.echo(f"  {error['remedy']}", err=True)
        style(f"  [{error['code']}]", dim=True)


def _colored() -> bool | None:
    """What the environment says about colours (no-color.org); None if nothing."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return True if os.environ.get("FORCE_COLOR") else None


def emit(payload: Any, *, as_json: bool, render: Callable[[Console], None], failed: Sequence[str] = ()) -> None:
    """Print the result: as JSON, or by `render` on a terminal; if nothing else is wanted, what has failed."""
    if as_json:
        click.echo(json.dumps(plain(payload), ensure_ascii=False, allow_nan=False))
        return
    if _asked(_QUIET):
        for line in failed:
            click.echo(f"error: {printable(line)}", err=True)
        return
    from rich.console import Console

    # Without a terminal Rich would guess 80 columns and fold tables; a pipe has no edge.
    console = Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=120)
    render(console)


def safe(text: object) -> str:
    """Text from a file or a table, for the terminal: no markup, no control characters."""
    from rich.markup import escape

    return escape(printable(text))


def printable(text: object) -> str:
    """Text without control characters."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text))


@contextmanager
def progress_bar() -> Iterator[Callable[[str, float], None]]:
    """A bar on standard error while work goes on; nothing where nobody watches."""
    if not sys.stderr.isatty() or _asked(_QUIET) or _asked(_NO_PROGRESS):
        yield lambda _what, _part: None
        return
    from incrowd.core.progress import terminal_bar

    with terminal_bar() as tell:
        yield tell


def plain(value: Any) -> Any:
    """Values as JSON has them; infinity, which it has not, as text."""
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
