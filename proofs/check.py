"""Has Coq check the proofs in this folder, and says what every theorem rests on.

Everything called Theorem is a result that docs/proofs.md states; everything called Lemma is a step on the way. The
files are compiled in a copy, coqchk reads the compiled proofs again by itself, and every theorem must be closed: proved
from the rules of the logic alone, without an axiom. It needs Python's standard library and no more.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIBRARY = "From mathcomp Require Import all_ssreflect all_algebra ring.\n"
QUIET = ("-q", "-w", "-notation-overridden,-ambiguous-paths", "-Q", ".", "Incrowd")
CLOSED = "Closed under the global context"
FORBIDDEN = (
    r"\b(?:Admitted|admit|give_up|Abort|Axioms?|Parameters?|Conjectures?|bypass_check|Unset (?!Strict|Printing)\w+)\b"
)


def files(folder: Path = HERE) -> list[str]:
    """The names of the files, without `.v`, each after those it uses."""
    return re.findall(r"^(\w+)\.v$", (folder / "_CoqProject").read_text(encoding="utf-8"), flags=re.MULTILINE)


def without_comments(text: str) -> str:
    """The commands of a file; comments of Coq may be nested."""
    kept, depth = [], 0
    for piece in re.split(r"(\(\*|\*\))", text):
        if piece in {"(*", "*)"}:
            depth += 1 if piece == "(*" else -1
        elif depth == 0:
            kept.append(piece)
    return " ".join(kept)


def theorems(folder: Path = HERE) -> list[str]:
    """The theorems, as `File.name`."""
    return [
        f"{name}.{theorem}"
        for name in files(folder)
        for theorem in re.findall(r"^Theorem (\w+)", without_comments((folder / f"{name}.v").read_text()), re.MULTILINE)
    ]


def shortcuts(folder: Path = HERE) -> list[str]:
    """Words with which a proof could be left out."""
    return [
        f"{name}.v: {found.group()}"
        for name in files(folder)
        for found in re.finditer(FORBIDDEN, without_comments((folder / f"{name}.v").read_text(encoding="utf-8")))
    ]


def coq(folder: Path, *command: str) -> str:
    """What one of Coq's programs prints; an error if it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def missing() -> str | None:
    """Why the proofs cannot be checked here, if they cannot."""
    if not all(map(shutil.which, ("coqc", "coqchk"))):
        return "Coq is not installed (Debian 12: see tests/machine)"
    if not (version := coq(HERE, "coqc", "--version").split("version ")[-1]).startswith("8.16"):
        return f"the proofs are written for Coq 8.16, and this is {version.split()[0]}"
    with tempfile.TemporaryDirectory() as name:
        Path(name, "Probe.v").write_text(LIBRARY, encoding="utf-8")
        try:
            coq(Path(name), "coqc", *QUIET, "Probe.v")
        except RuntimeError:
            return "Mathematical Components with algebra-tactics is not installed (Debian 12: see tests/machine)"
    return None


def build(folder: Path, names: list[str]) -> None:
    """Compile files in a folder; Coq reads every proof and refuses the file if one of them fails."""
    for name in names:
        coq(folder, "coqc", *QUIET, f"{name}.v")


def recheck(folder: Path) -> None:
    """The small independent checker reads the compiled proofs; the libraries under them it takes as they are."""
    modules = [word for name in files(folder) for word in ("-norec", f"Incrowd.{name}")]
    coq(folder, "coqchk", "-silent", "-bytecode-compiler", "yes", "-Q", ".", "Incrowd", *modules)


def assumptions(folder: Path) -> str:
    """What Coq's `Print Assumptions` says of all theorems together."""
    everything = ", ".join(f"@Incrowd.{name}" for name in theorems(folder))
    commands = f"Definition everything := ({everything}).\nPrint Assumptions everything.\n"
    text = f"{LIBRARY}From Incrowd Require {' '.join(files(folder))}.\n{commands}"
    (folder / "Assumptions.v").write_text(text, encoding="utf-8")
    return coq(folder, "coqc", *QUIET, "Assumptions.v").strip()


def main() -> int:
    """Check everything; 0 if all of it holds."""
    if why := missing():
        print(f"Not checked: {why}.")
        return 1
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(shutil.copytree(HERE, Path(name, "proofs")))
        build(folder, files(folder))
        recheck(folder)
        said = assumptions(folder)
    print("\n".join(theorems()), said, sep="\n")
    if said != CLOSED or shortcuts():
        print(f"Not everything is proved: {', '.join(shortcuts()) or 'see above'}.")
        return 1
    print(f"{len(theorems())} theorems checked in {time.monotonic() - started:.0f} s, none with an assumption.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
