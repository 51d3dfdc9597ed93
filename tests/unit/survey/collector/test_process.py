"""A real collector in a process of its own: many clients, killed without warning, started again; and with TLS."""

import asyncio
import datetime as dt
import http.client
import json
import secrets
import signal
import socket
import ssl
import subprocess
import sys
import time
from contextlib import ExitStack, closing, suppress
from urllib.parse import urlsplit

import pytest

from incrowd.survey import Randomizer
from incrowd.survey.collector.store import Store

ANSWERS = {"sex": "f", "commute": "bike", "age": "42"}


@pytest.fixture
def folder(tmp_path, questionnaire):
    (tmp_path / "q.json").write_bytes(questionnaire.to_bytes())
    return tmp_path


def cells(folder):
    with closing(Store(str(folder / "s.sqlite"))) as store:
        return store.cells()


def connect(address, **options):
    place = urlsplit(address)
    kind = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection
    return kind(place.hostname, place.port, timeout=20, **options)


def post(connection, envelope):
    connection.request("POST", "/records", json.dumps(envelope), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    answer.read()
    return answer.status


HEAD = "POST /records HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


async def pour(address, envelopes, acknowledged):
    """One client: sends records over one connection until it breaks."""
    place = urlsplit(address)
    try:
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
    except OSError:
        return
    try:
        for envelope in envelopes:
            body = json.dumps(envelope).encode()
            writer.write(f"{HEAD}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(answer.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]))
            if answer.startswith((b"HTTP/1.1 201", b"HTTP/1.1 409")):
                acknowledged.add(envelope["nonce"])
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def test_no_acknowledged_record_is_lost_or_doubled_by_a_kill(folder, questionnaire, collector):
    """Records are distinct by their codes, so each can be told to be there exactly once."""
    codes = [(sex, commute, age) for sex in range(2) for commute in range(5) for age in range(100)]
    envelopes = [
        {"questionnaire": questionnaire.digest, "nonce": secrets.token_hex(16), "record": questionnaire.record(code)}
        for code in codes
    ]
    code_of = {envelope["nonce"]: code for envelope, code in zip(envelopes, codes, strict=True)}
    acknowledged = set()
    for attempt in range(3):
        process, address = collector(folder)

        async def run(address=address, process=process, attempt=attempt):
            clients = [pour(address, envelopes[i::25], acknowledged) for i in range(25)]
            work = asyncio.gather(*clients)
            before = len(acknowledged)
            while attempt < 2 and not work.done():  # in the middle of it
                await asyncio.sleep(0)
                if len(acknowledged) > before + 150:
                    process.send_signal(signal.SIGKILL)
                    break
            await work

        asyncio.run(run())
        if attempt < 2:
            process.wait()
            assert 0 < len(acknowledged) < len(envelopes)
        else:
            process.terminate()
            assert process.wait() in (0, -signal.SIGTERM)
        kept = cells(folder)
        assert {code_of[nonce] for nonce in acknowledged} <= set(kept)
        assert set(kept.values()) == {1}
    # All were sent again in the end, whether acknowledged before or not: each is there, and once.
    assert len(kept) == len(envelopes)
    assert len(acknowledged) == len(envelopes)


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_in_order_and_leaves_a_mixed_file(folder, questionnaire, collector, sign):
    process, address = collector(folder)
    randomizer = Randomizer(questionnaire)
    with closing(connect(address)) as connection:
        assert [post(connection, randomizer.envelope(ANSWERS)) for _ in range(20)] == [201] * 20
    process.send_signal(sign)
    assert process.wait() in ((0,) if sign == signal.SIGINT else (0, -signal.SIGTERM))
    assert process.stderr.read() == ""
    assert process.stdout.read() == ""
    assert sorted(path.name for path in folder.iterdir()) == ["q.json", "s.sqlite"]  # the log is gone
    assert sum(cells(folder).values()) == 20


def test_a_taken_port_is_a_clear_error(folder):
    pytest.importorskip("uvicorn", reason="the extra 'collect' is not installed")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [
            sys.executable,
            "-m",
            "incrowd",
            "collect",
            "q.json",
            "--store",
            "s.sqlite",
            "--port",
            port,
            "--json",
        ]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["code"] == "collector-address"


def test_tls(folder, questionnaire, collector):
    certificate(folder)
    _, address = collector(folder, "--certfile", "tls.pem", "--keyfile", "tls.key")
    assert address.startswith("https://")
    trusted = ssl.create_default_context(cafile=str(folder / "tls.pem"))
    with closing(connect(address, context=trusted)) as connection:
        assert post(connection, Randomizer(questionnaire).envelope(ANSWERS)) == 201
    with closing(connect(address, context=ssl.create_default_context())) as stranger, pytest.raises(ssl.SSLError):
        post(stranger, {})


def test_wrong_tls_files_are_a_clear_error(folder):
    pytest.importorskip("uvicorn", reason="the extra 'collect' is not installed")
    (folder / "tls.pem").write_text("nothing")
    command = [sys.executable, "-m", "incrowd", "collect", "q.json", "--store", "s.sqlite", "--port", "0", "--json"]
    command += ["--certfile", "tls.pem", "--keyfile", "tls.pem"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    assert json.loads(done.stdout)["error"]["code"] == "collector-address"


def test_slow_and_broken_clients_do_not_stop_it(folder, questionnaire, collector):
    _, address = collector(folder)
    place = urlsplit(address)
    idle = [socket.create_connection((place.hostname, place.port)) for _ in range(20)]
    for client in idle[:10]:
        client.sendall(
            b"POST /records HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"
        )
    for client in idle[10:15]:
        client.sendall(b"\x16\x03\x01 nonsense\r\n\r\n")
    for client in idle[:5]:
        client.close()
    with closing(connect(address)) as connection:
        assert post(connection, Randomizer(questionnaire).envelope(ANSWERS)) == 201
    for client in idle[5:]:
        client.close()


@pytest.mark.parametrize("tls", [(), ("--certfile", "tls.pem", "--keyfile", "tls.key")], ids=["plain", "TLS"])
def test_more_slow_clients_than_file_handles_do_not_stop_it(folder, questionnaire, collector, tls):
    certificate(folder)
    process, address = collector(folder, *tls, handles=64)
    place = urlsplit(address)
    halves = (b"", b"POST /rec", b"POST /records HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{")
    with ExitStack() as slow:
        for number in range(150):
            client = slow.enter_context(socket.create_connection((place.hostname, place.port), timeout=20))
            with suppress(ConnectionError):  # it may have been closed already
                client.sendall(b"" if tls else halves[number % 3])
        trusted = {"context": ssl.create_default_context(cafile=str(folder / "tls.pem"))} if tls else {}
        for _ in range(3):
            with closing(connect(address, **trusted)) as connection:
                assert post(connection, Randomizer(questionnaire).envelope(ANSWERS)) == 201
    process.terminate()
    assert process.wait(60) in (0, -signal.SIGTERM)
    said = process.stderr.read().splitlines()
    assert len(said) == 1
    assert said[0].startswith("There are too many connections (32)")
    assert sum(cells(folder).values()) == 3


def certificate(folder):
    """A TLS certificate for 127.0.0.1, signed by itself."""
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.fromtimestamp(time.time(), dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "tls.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    pem = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "tls.key").write_bytes(key.private_bytes(*pem))
