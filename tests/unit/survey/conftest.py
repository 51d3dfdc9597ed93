"""Running the JavaScript module in node."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import incrowd.survey

MODULE = Path(incrowd.survey.__file__).parent / "randomizer.js"


@pytest.fixture
def javascript(tmp_path):
    """Runs a program after importing the module as `m`; its `input` is what is given, its output JSON."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")

    def run(program, given=None, module=None):
        (tmp_path / "randomizer.mjs").write_text(module or MODULE.read_text(encoding="utf-8"), encoding="utf-8")
        head = 'import * as m from "./randomizer.mjs"; import { readFileSync } from "node:fs";\n'
        node18 = 'import { webcrypto } from "node:crypto"; globalThis.crypto ??= webcrypto;\n'
        head += node18 + "const input = JSON.parse(readFileSync(0));\n"
        (tmp_path / "program.mjs").write_text(head + program, encoding="utf-8")
        done = subprocess.run(
            [node, "program.mjs"], input=json.dumps(given), cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run
