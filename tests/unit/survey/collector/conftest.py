"""A questionnaire, and a collector in a process of its own."""

import json
import subprocess
import sys

import pytest

from incrowd.survey import Question, Questionnaire
from incrowd.survey.questionnaire import numerator64


def make_questionnaire(rho=0.3, title="How the town moves"):
    ages = tuple(str(age) for age in range(100))
    return Questionnaire.make(
        title,
        [
            Question("sex", "What is your sex?", ("f", "m"), ("Female", "Male"), numerator64(rho)),
            Question(
                "commute",
                "How do you go to work on most days?",
                ("car", "bus", "bike", "foot", None),
                ("By car", "By bus or train", "By bicycle", "On foot", "I would rather not say"),
                numerator64(rho),
            ),
            Question("age", "How old are you, in completed years?", ages, ages, numerator64(rho)),
        ],
        records=10_000,
    )


@pytest.fixture(scope="session")
def questionnaire():
    return make_questionnaire()


@pytest.fixture
def asking():
    """Makes questionnaires."""
    return make_questionnaire


@pytest.fixture
def collector():
    """Starts collectors, each given as a folder with q.json; they are ended with the test."""
    pytest.importorskip("starlette", reason="the extra 'collect' is not installed")
    pytest.importorskip("uvicorn", reason="the extra 'collect' is not installed")
    processes = []

    def start(folder, *options, handles=None):
        limited = [] if handles is None else ["sh", "-c", f'ulimit -n {handles}; exec "$@"', "sh"]
        command = [*limited, sys.executable, "-m", "incrowd", "collect", "q.json", "--store", "s.sqlite"]
        command += ["--port", "0", "--json"]
        process = subprocess.Popen(
            [*command, *options], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        processes.append(process)
        line = process.stdout.readline()
        assert line, process.stderr.read()
        return process, json.loads(line)["address"]

    yield start
    for process in processes:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
