"""Documents that anyone can check: canonical JSON, a digest over all of it, and an Ed25519 signature.

Certificates and questionnaires are such documents. Each names its ``format``, which the signature covers too, so a
signature under one kind of document is none under another.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from incrowd.core.errors import InputError
from incrowd.core.files import read_ordinary

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

_ALGORITHM = "Ed25519"
_LARGEST_KEY = 1 << 16


def canonical(content: Any) -> bytes:
    """The one way to write a JSON value down: keys sorted, no spaces, UTF-8."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def sha256(content: bytes) -> str:
    """A digest as documents show it."""
    return hashlib.sha256(content).hexdigest()


def file_sha256(path: Path) -> str:
    """The digest of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def seal(content: Mapping[str, Any]) -> dict[str, Any]:
    """The document with a digest over all the rest of it, so that a change anywhere shows."""
    body = {key: value for key, value in content.items() if key not in ("digest", "signature")}
    return {**body, "digest": sha256(canonical(body))}


def is_sealed(document: Mapping[str, Any]) -> bool:
    """Whether the digest is that of the rest; of what JSON in UTF-8 cannot hold there is none."""
    try:
        return bool(document.get("digest") == seal(document)["digest"])
    except (TypeError, ValueError, RecursionError):
        return False


def to_bytes(document: Mapping[str, Any]) -> bytes:
    """The file: canonical, with a newline at its end."""
    return canonical(document) + b"\n"


# --- signatures ---------------------------------------------------------------------------------------------------


def make_keys() -> tuple[bytes, bytes]:
    """A new Ed25519 key pair in PEM: the secret one and the public one."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return secret, public


def load_secret_key(path: str | Path) -> Ed25519PrivateKey:
    """The secret key in a PEM file."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    try:
        key = serialization.load_pem_private_key(_read_key(path), password=None)
    except (ValueError, TypeError):
        raise _wrong_key(path) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise _wrong_key(path)
    return key


def sign(document: Mapping[str, Any], key: Ed25519PrivateKey) -> dict[str, Any]:
    """The document with an Ed25519 signature over its digest."""
    from cryptography.hazmat.primitives import serialization

    public = key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    sealed = seal(document)
    signature = {
        "algorithm": _ALGORITHM,
        "public_key": base64.b64encode(public).decode(),
        "value": base64.b64encode(key.sign(_signed(sealed))).decode(),
    }
    return {**sealed, "signature": signature}


def fingerprint(public: Ed25519PublicKey) -> str:
    """By what people tell public keys apart: the SHA-256 of the key as DER, which other programs print too."""
    from cryptography.hazmat.primitives import serialization

    der = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return f"SHA256:{sha256(der)}"


def load_public_key(path: str | Path) -> Ed25519PublicKey:
    """The public key in a PEM file."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key = serialization.load_pem_public_key(_read_key(path))
    except ValueError:
        raise _wrong_key(path) from None
    if not isinstance(key, Ed25519PublicKey):
        raise _wrong_key(path)
    return key


def key_fingerprint(path: str | Path) -> str:
    """The fingerprint of the public key in a PEM file."""
    return fingerprint(load_public_key(path))


def signer(document: Mapping[str, Any]) -> str | None:
    """The fingerprint of the key that signed a document; None if it is not signed, or not by the key that it names."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    signature = document.get("signature")
    try:
        named, value = (_from_base64(signature[key]) for key in ("public_key", "value"))  # type: ignore[index]
        public = Ed25519PublicKey.from_public_bytes(named)
        public.verify(value, _signed(document))
    except (InvalidSignature, KeyError, TypeError, ValueError):
        return None
    return fingerprint(public) if signature["algorithm"] == _ALGORITHM else None  # type: ignore[index]


def _from_base64(text: str) -> bytes:
    """What a text stands for, if it is the one text that does."""
    found = base64.b64decode(text, validate=True)
    if base64.b64encode(found).decode() != text:
        raise ValueError("this is written otherwise")
    return found


def signature_is_valid(document: Mapping[str, Any], public_key_file: str | Path | None = None) -> bool:
    """Whether the signature is by the key that it names, and that key is the one in the file, if one is given."""
    expected = None if public_key_file is None else key_fingerprint(public_key_file)
    found = signer(document)
    return found is not None and expected in (None, found)


def _signed(document: Mapping[str, Any]) -> bytes:
    return f"{document['format']} {document['digest']}".encode()


def _read_key(path: str | Path) -> bytes:
    try:
        return read_ordinary(path, _LARGEST_KEY)
    except OSError as error:
        raise InputError(
            f"Cannot read the key {path}: {error.strerror or type(error).__name__}.",
            code="key-unreadable",
            remedy="Make a pair of keys with `incrowd keys`.",
        ) from None


def _wrong_key(path: str | Path) -> InputError:
    return InputError(
        f"{path} is not an Ed25519 key in PEM form of the kind needed here.",
        code="key-unreadable",
        remedy="Sign with the secret key, verify with the public one; `incrowd keys` makes both.",
    )
