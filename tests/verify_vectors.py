#!/usr/bin/env python3
"""Reproduces the golden vectors of the lease record, independently of the Rust code.

Written from PROTOCOL section 6 and the documentation of `lease_core::auth` alone, with nothing but
Python's standard library. A mismatch means that one of the two implementations does not do what the
documentation says: exit status 1, and a sentence that names the vector and the value.

    python3 tests/verify_vectors.py [DIRECTORY OF VECTORS]
"""

import hashlib
import hmac
import json
import pathlib
import sys
from decimal import Decimal

ROOT = pathlib.Path(__file__).resolve().parent.parent
VECTORS = ROOT / "lease-core" / "tests" / "vectors"
GOLDEN = ROOT / "lease-core" / "tests" / "golden" / "lease-v1.json"
LABEL = "holdfast lease v1"
AT_LEAST = 12


class Mismatch(Exception):
    """A value that is not the one that the rules give."""


def hkdf_sha256(secret: bytes, info: bytes) -> bytes:
    """RFC 5869 with no salt, for one block of output."""
    pseudo_random_key = hmac.new(bytes(32), secret, hashlib.sha256).digest()
    return hmac.new(pseudo_random_key, info + b"\x01", hashlib.sha256).digest()


def field(value) -> bytes:
    if value is None:
        return b"\x00"
    content = value.to_bytes(8, "big") if isinstance(value, int) else value.encode()
    return b"\x01" + len(content).to_bytes(4, "big") + content


def canonical(record: dict) -> bytes:
    millis = record["ttl_seconds"] * 1000
    if millis != int(millis):
        raise Mismatch("ttl_seconds has more than three decimals")
    values = [
        LABEL,
        record["cluster"],
        record["epoch"],
        record["holder"],
        int(millis),
        record.get("last_snapshot_epoch"),
        record.get("last_snapshot_at"),
    ]
    return b"".join(map(field, values))


def parse(text: str) -> dict:
    # Exact numbers: a float would collapse epochs and round a ttl.
    return json.loads(text, parse_float=Decimal)


def expect(what: str, documented, computed) -> None:
    if documented != computed:
        raise Mismatch(f"{what} is {documented!r} in the vector and {computed!r} by the rules")


def check(vector: dict) -> None:
    secret = bytes.fromhex(vector["secret_hex"])
    record = parse(vector["record"])
    lease_key = hkdf_sha256(secret, b"ha-lease")
    id_key = hkdf_sha256(secret, b"ha-key-id")
    covered = canonical(record)
    expect("lease_subkey_hex", vector["lease_subkey_hex"], lease_key.hex())
    expect("key_id_subkey_hex", vector["key_id_subkey_hex"], id_key.hex())
    expect("key_id", vector["key_id"], hashlib.sha256(id_key).digest()[:16].hex())
    expect("canonical_hex", vector["canonical_hex"], covered.hex())
    expect("mac", vector["mac"], hmac.new(lease_key, covered, hashlib.sha256).hexdigest())
    expect("the record's mac", record["mac"], vector["mac"])
    expect("the record's key_id", record["key_id"], vector["key_id"])


def check_distinct(vectors: dict) -> None:
    """No two vectors say the same: equal bytes of different records would be a forgery."""
    seen = {}
    for name, vector in vectors.items():
        other = seen.setdefault((vector["secret_hex"], vector["canonical_hex"]), name)
        if other != name:
            raise Mismatch(f"{other} and {name} have the same canonical bytes under one secret")


def check_golden(vectors: dict) -> None:
    """The golden file is the record of the vector `golden`, to the byte."""
    expect("golden/lease-v1.json", GOLDEN.read_text(), vectors["golden.json"]["record"])


def main() -> int:
    directory = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else VECTORS
    vectors = {path.name: json.loads(path.read_text()) for path in sorted(directory.glob("*.json"))}
    checks = [(name, lambda vector=vector: check(vector)) for name, vector in vectors.items()]
    checks.append(("all vectors", lambda: check_distinct(vectors)))
    checks.append(("golden/lease-v1.json", lambda: check_golden(vectors)))
    if len(vectors) < AT_LEAST:
        print(f"found {len(vectors)} vectors in {directory}, at least {AT_LEAST} are needed")
        return 1
    passed = failed = 0
    for name, run in checks:
        try:
            run()
            passed += 1
        except (Mismatch, KeyError, ValueError) as error:
            failed += 1
            print(f"{name}: {type(error).__name__}: {error}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
