"""Where random bits come from: AES-256 in counter mode, under a secret key or under a seed."""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

Words = NDArray[np.uint64]

WORD = np.dtype("<u8")  # little-endian everywhere, so that a seed means the same on every platform
PIECE = 1 << 18  # bytes encrypted at a time: large enough to be fast, small enough to stay in the cache
_ZEROS = memoryview(bytes(PIECE))


class Bits(Protocol):
    """Fair independent bits, and what a certificate says about them."""

    @property
    def kind(self) -> str:
        """Where they come from."""

    def fill(self, words: Words) -> None:
        """Overwrites words that lie contiguously in memory."""


class Keystream:
    """The stream of one key, never to be used for a second one: its counter starts at zero. Threads may share it."""

    def __init__(self, key: bytes) -> None:
        self._encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        self._lock = threading.Lock()

    def fill(self, words: Words) -> None:
        """Takes the next words of the stream."""
        target = words.view(np.uint8)
        with self._lock:
            for first in range(0, len(target), PIECE):
                piece = target[first : first + PIECE]
                self._encryptor.update_into(_ZEROS[: len(piece)], piece.data)


class _Process:
    """How many forks lie between the first process and this one."""

    forks = 0

    @classmethod
    def forked(cls) -> None:
        cls.forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Process.forked)


class SystemBits:
    """A stream under a key from the operating system, replaced in a forked child.

    The child inherits the parent's key (and perhaps its lock, held by a thread that the child does not have), so it
    leaves both behind.
    """

    kind = "AES-256-CTR keyed by the operating system"

    def __init__(self) -> None:
        self._current = (_Process.forks, Keystream(secrets.token_bytes(32)))

    def fill(self, words: Words) -> None:
        """Takes the next words of this process's stream."""
        forks, stream = self._current
        if forks != _Process.forks:
            stream = Keystream(secrets.token_bytes(32))
            self._current = (_Process.forks, stream)
        stream.fill(words)


class SeededBits:
    """A stream under a key that anyone can compute, for tests."""

    kind = "seeded (not safe to publish)"

    def __init__(self, seed: int) -> None:
        self._stream = Keystream(hashlib.sha256(b"incrowd test seed %d" % seed).digest())

    def fill(self, words: Words) -> None:
        """Takes the next words of the seed's stream."""
        self._stream.fill(words)


class DerivedBits:
    """A stream for one part of a draw, under a key that HKDF-SHA256 derives from a secret key and the part's name.

    Whoever knows the secret key gets the same stream for the same name, in any process; streams of different names
    cannot be told from independent ones by those who do not.
    """

    kind = "AES-256-CTR, keyed by HKDF-SHA256 from a key of the operating system's"

    def __init__(self, key: bytes, name: bytes) -> None:
        derivation = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=b"incrowd " + name)
        self._stream = Keystream(derivation.derive(key))

    def fill(self, words: Words) -> None:
        """Takes the next words of the part's stream."""
        self._stream.fill(words)
