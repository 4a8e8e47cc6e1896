"""Check a vendor's detached OpenPGP signature against keys that are committed beside the manifest, with `gpgv`.

No key is ever fetched, and the machine's own keyrings are not looked at.
"""

from __future__ import annotations

import base64
import binascii
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from runners.errors import Unverifiable

GPGV_SECONDS = 600
_ARMOR = re.compile(
    r"-----BEGIN PGP (?P<kind>[A-Z ]+)-----\r?\n(?:[A-Za-z]+: [^\n]*\n)*\r?\n?(?P<body>[A-Za-z0-9+/=\s]+?)"
    r"(?:=[A-Za-z0-9+/]{4}\s*)?-----END PGP (?P=kind)-----"
)


def dearmored(text: str) -> bytes:
    """The binary packets of all armored blocks in `text`; Unverifiable when there is none."""
    try:
        blocks = [base64.b64decode("".join(block["body"].split()), validate=True) for block in _ARMOR.finditer(text)]
    except binascii.Error as error:
        raise Unverifiable(f"an armored OpenPGP block is damaged: {error}") from error
    if not blocks:
        raise Unverifiable("no armored OpenPGP block was found where a signature or key was expected")
    return b"".join(blocks)


def verify_signature(file: Path, signature: str, keys: Sequence[Path], scratch: Path) -> str:
    """Fingerprint of the primary key whose signature of `file` is valid; Unverifiable when there is none.

    A key that expired after it signed still counts: old releases are not signed again.
    """
    if not keys:
        raise Unverifiable(f"{file.name}: the manifest names no key for this release, so its signature says nothing")
    ring, detached = scratch / "keys.gpg", scratch / "signature.gpg"
    ring.write_bytes(b"".join(dearmored(key.read_text()) for key in keys))
    detached.write_bytes(dearmored(signature))
    command = ["gpgv", "--status-fd", "1", "--keyring", str(ring), str(detached), str(file)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=GPGV_SECONDS, check=False)
    except FileNotFoundError as error:
        raise Unverifiable("gpgv is missing, so no signature can be checked; install the package gpgv") from error
    finally:
        ring.unlink()
        detached.unlink()
    valid = re.search(r"^\[GNUPG:\] VALIDSIG (?:\S+ ){9}(\S+)", done.stdout, re.MULTILINE)
    if not valid or re.search(r"^\[GNUPG:\] (BADSIG|REVKEYSIG|ERRSIG)", done.stdout, re.MULTILINE):
        said = [line for line in done.stderr.splitlines() if "gpgv:" in line]
        raise Unverifiable(f"{file.name}: the signature is not valid: {said[-1] if said else 'gpgv says nothing'}")
    return valid[1]
