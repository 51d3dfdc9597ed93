"""The package as people install it: built, put into fresh environments, tried, and weighed.

    python tests/packages.py                       wheel and sdist, plain, on this interpreter; each extra alone; all
    python tests/packages.py --plain --python 3.12 --python ~/python3.14    plain alone, on these interpreters

It needs uv (`make setup` installs it) and what uv downloads. What an environment weighs is the space that its files
take, in MB of 2^20 bytes.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
UV = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
POLICY = (
    "incrowd: 1\nattributes:\n  age: {type: integer, domain: {from: 0, to: 79}, hierarchy: {widths: [20, 40]}}\n"
    "  sex: {domain: [f, m]}\nrelease: {mechanism: sampled_crowd, epsilon: 3, delta: 1e-4, selection_epsilon: 1}\n"
)
START = f"""
import pathlib, sqlite3, sys
import incrowd, incrowd.sources
pathlib.Path("policy.yaml").write_text({POLICY!r})
ROWS = [{{"age": i * i % 80, "sex": "fm"[i % 2]}} for i in range(4000)]

def publish(data, **options):
    out = incrowd.release(data, "policy.yaml", **options).save(f"out-{{len(list(pathlib.Path().glob('out-*')))}}")
    assert incrowd.verify(out).valid

def table():
    import pyarrow as pa
    return pa.Table.from_pylist(ROWS)

def database(name):
    with sqlite3.connect(name) as connection:
        connection.execute("CREATE TABLE people (age INT, sex TEXT)")
        connection.executemany("INSERT INTO people VALUES (:age, :sex)", ROWS)
    connection.close()
"""
EXTRAS = {
    "stat": """
import pyreadstat
pyreadstat.write_sav(table().to_pandas(), "people.sav")
publish("people.sav", output="xlsx")
""",
    "lake": """
import deltalake, pyiceberg
deltalake.write_deltalake("people", table())
publish("people")
""",
    "sqlite": """
database("people.db")
publish("sqlite:///people.db")
""",
    # There is no server to be asked: that must be what is missing, and no library.
    "postgres": """
import psycopg
try:
    incrowd.sources.open_source("postgresql://x@127.0.0.1:1/x").columns()
except incrowd.InputError as error:
    assert "cannot be reached" in str(error), error
else:
    raise AssertionError
""",
    # Which warehouse to install for, users decide.
    "ibis": """
import ibis, incrowd.sources.ibis
""",
    "spark": """
import pyarrow.parquet
pyarrow.parquet.write_table(table(), "people.parquet")
publish("people.parquet", engine="local[1]")
""",
    "collect": """
import incrowd.survey.collector.service
""",
    "studio": """
import incrowd.studio.service
""",
}
EXTRAS["all"] = "".join(EXTRAS.values()).replace("people.db", "all.db")
JAVA = {"spark", "all"}


def run(*command, **options):
    """A command whose failure is ours; what it says on standard error comes back."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **options)
    if done.returncode:
        raise SystemExit(
            f"{' '.join(map(str, command))[:200]}\nended with {done.returncode}:\n{done.stdout}{done.stderr}"
        )
    return done.stderr


def weight(place):
    """In MB of 2^20 bytes."""
    return sum(os.lstat(Path(at) / name).st_blocks * 512 for at, _, names in os.walk(place) for name in names) >> 20


def try_out(place, python, what, code=""):
    """A fresh environment with `what`, in which a release is made, verified and estimated from without a warning."""
    home = Path(tempfile.mkdtemp(dir=place))
    interpreter = home / "env" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    run(UV, "venv", "--quiet", "--python", python, home / "env")
    run(
        UV,
        "pip",
        "install",
        "--quiet",
        "--link-mode",
        "copy",
        "--python",
        interpreter,
        what,
        "-c",
        ROOT / "constraints.txt",
    )
    weighs = weight(home / "env")
    program = [interpreter, "-W", "default", "-m", "incrowd"]
    (home / "policy.yaml").write_text(POLICY)
    (home / "people.csv").write_text("age,sex\n" + "".join(f"{i * i % 80},{'fm'[i % 2]}\n" for i in range(4000)))
    said = [run(*program, "release", "policy.yaml", "--data", "people.csv", "-o", "plain", "--quiet", cwd=home)]
    said += [
        run(*program, *rest, "--quiet", cwd=home)
        for rest in (["verify", "plain"], ["estimate", "plain", "--by", "sex"])
    ]
    if any("Warning" in text for text in said):
        raise SystemExit(f"A library's warning reaches the user:\n{''.join(said)}")
    if code:
        run(interpreter, "-W", "default", "-c", START + code, cwd=home)
    version = subprocess.run([interpreter, "-V"], capture_output=True, text=True, check=True).stdout.split()[1]
    extra = what[what.index("[") :] if "[" in what else ""
    print(f"{version:10} {Path(what.removesuffix(extra)).name + extra:45} {weighs:5,} MB", flush=True)
    shutil.rmtree(home)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", help="an interpreter, or its version; this one if not given")
    parser.add_argument("--plain", action="store_true", help="without the extras")
    parser.add_argument("--extra", action="append", choices=EXTRAS, help="this extra alone")
    asked = parser.parse_args()
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]) - {"dev"}
    if listed != set(EXTRAS):
        raise SystemExit(f"Not tried: {listed ^ set(EXTRAS)}")
    with tempfile.TemporaryDirectory(prefix="incrowd-packages-") as place:
        run(UV, "build", "--quiet", "--out-dir", Path(place, "dist"), ROOT)
        wheel, sdist = (str(next(Path(place, "dist").glob(f"*.{kind}"))) for kind in ("whl", "tar.gz"))
        for python in asked.python or [sys.executable]:
            for what in [] if asked.extra else [wheel, sdist]:
                try_out(place, str(Path(python).expanduser()), what)
            for extra in asked.extra or ([] if asked.plain else EXTRAS):
                if extra in JAVA and shutil.which("java") is None:
                    print(f"{extra}: not tried, there is no Java", flush=True)
                    continue
                try_out(place, str(Path(python).expanduser()), f"{wheel}[{extra}]", EXTRAS[extra])


if __name__ == "__main__":
    main()
