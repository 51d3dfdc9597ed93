"""A real Spark cluster: a master and two workers on loopback, started once, and a session on it. And a server of Spark
Connect."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest

CONNECT_CLIENT = ("grpc", "grpc_status", "zstandard")
PATIENCE = 300  # seconds; nothing waits that long unless something is broken


class Processes:
    """Java processes of Spark's; the folder takes what they write."""

    def __init__(self, folder: Path, at_the_end: contextlib.ExitStack) -> None:
        import pyspark

        self.folder = folder
        self.home = Path(pyspark.__file__).parent
        self.processes: list[subprocess.Popen[bytes]] = []
        at_the_end.callback(self.kill_all)

    def launch(self, program: str, *arguments: str, memory: str = "256m") -> "subprocess.Popen[bytes]":
        settings = {"SPARK_HOME": str(self.home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": memory}
        with self.log(len(self.processes)).open("wb") as log:
            process = subprocess.Popen(
                [str(self.home / "bin" / program), *arguments],
                env=os.environ | settings,
                cwd=self.folder,
                stdout=log,
                stderr=log,
                # A group of its own, so that the executors that a worker starts end with it.
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def log(self, number: int) -> Path:
        return self.folder / f"process-{number}.log"

    def wait_for(self, pattern: str) -> str:
        """Waits for a line in the log of the process that was started last."""
        log, end = self.log(len(self.processes) - 1), time.monotonic() + PATIENCE
        while time.monotonic() < end:
            found = re.search(pattern, log.read_text(errors="replace"))
            if found:
                return found[found.re.groups]
            assert self.processes[-1].poll() is None, log.read_text(errors="replace")
            time.sleep(0.1)
        raise AssertionError(log.read_text(errors="replace"))

    def kill(self, process: "subprocess.Popen[bytes]") -> None:
        """Ends a process, and whatever it started, at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def kill_all(self) -> None:
        for process in self.processes:
            self.kill(process)


class Cluster(Processes):
    """A standalone cluster."""

    def __init__(self, folder: Path, at_the_end: contextlib.ExitStack) -> None:
        super().__init__(folder, at_the_end)
        self.address = ""
        self.start("master.Master", "--host", "127.0.0.1", "--port", "0")
        self.address = self.wait_for(r"Starting Spark master at (spark://\S+)")
        self.add_worker()
        self.add_worker()

    def add_worker(self) -> "subprocess.Popen[bytes]":
        """One more worker; Spark gives it work as soon as it is there."""
        work = self.folder / f"work-{len(self.processes)}"
        arguments = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--work-dir", str(work), self.address]
        return self.start("worker.Worker", *arguments)

    def start(self, what: str, *arguments: str) -> "subprocess.Popen[bytes]":
        return self.launch("spark-class", f"org.apache.spark.deploy.{what}", "--webui-port", "0", *arguments)


class ConnectServer(Processes):
    """A server of Spark Connect, without a cluster behind it."""

    def __init__(self, folder: Path, at_the_end: contextlib.ExitStack) -> None:
        super().__init__(folder, at_the_end)
        settings = {
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": "0",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.session.timeZone": "Asia/Tokyo",
            "spark.ui.enabled": "false",
        }
        program = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]"]
        settled = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        self.launch("spark-submit", *program, *settled, "spark-internal", memory="512m")
        self.address = "sc://" + self.wait_for(r"Spark Connect server started at: (\S+)")


def require_spark() -> None:
    """Skips what needs Spark where it cannot run."""
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("there is no java here")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """The cluster; its processes end with the tests."""
    require_spark()
    with contextlib.ExitStack() as at_the_end:
        yield Cluster(tmp_path_factory.mktemp("spark"), at_the_end)


@pytest.fixture(scope="session")
def connect_server(tmp_path_factory):
    """A server of Spark Connect, for clients in processes of their own."""
    require_spark()
    missing = [name for name in CONNECT_CLIENT if find_spec(name) is None]
    if missing:
        pytest.skip(f"the client of Spark Connect lacks {', '.join(missing)}: pip install 'pyspark[connect]'")
    with contextlib.ExitStack() as at_the_end:
        yield ConnectServer(tmp_path_factory.mktemp("connect"), at_the_end)


@pytest.fixture(scope="session")
def spark(cluster, tmp_path_factory):
    """A session on the cluster, in a time zone and with settings that must make no difference."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.caseSensitive": "true",
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    os.environ["PYSPARK_PYTHON"] = sys.executable  # what executors run Python with
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what PySpark says about the versions of other packages
        builder = SparkSession.builder.master(cluster.address).appName("incrowd tests")
        session = builder.config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
