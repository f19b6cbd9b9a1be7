#!/usr/bin/env python3
"""Reproduces the golden vectors of the lease record, of sessions and of named leases, independently
of the Rust code, and judges the records that are to be refused.

Written from PROTOCOL sections 6 and 9 and the documentation of `lease_core::auth`, `record` and
`session::record` alone, with nothing but Python's standard library. A mismatch means that one of the two
implementations does not do what the documentation says: exit status 1, and a sentence that names the
vector and the value.

    python3 tests/verify_vectors.py [DIRECTORY OF VECTORS OF LEASES]
"""

import hashlib
import hmac
import json
import pathlib
import re
import sys
from decimal import Decimal

ROOT = pathlib.Path(__file__).resolve().parent.parent
VECTORS = ROOT / "lease-core" / "tests" / "vectors"
SESSION_VECTORS = ROOT / "lease-core" / "tests" / "session_vectors"
GOLDEN = ROOT / "lease-core" / "tests" / "golden"
AT_LEAST = {"lease": 12, "session": 20, "refused": 40}

# What the MAC of each kind covers behind the fields of the lease, after a label of its own.
KINDS = {
    "lease": ("holdfast lease v1", []),
    "session": ("holdfast session v1", ["object_key", "life", "state"]),
    "named lease": (
        "holdfast named lease v1",
        ["object_key", "session", "session_epoch", "session_life", "held_back"],
    ),
}


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


def canonical(record: dict, kind: str = "lease") -> bytes:
    label, more = KINDS[kind]
    millis = record["ttl_seconds"] * 1000
    if millis != int(millis):
        raise Mismatch("ttl_seconds has more than three decimals")
    values = [
        label,
        record["cluster"],
        record["epoch"],
        record["holder"],
        int(millis),
        record.get("last_snapshot_epoch"),
        record.get("last_snapshot_at"),
        *("true" if record.get(name) is True else record.get(name) for name in more),
    ]
    return b"".join(map(field, values))


def parse(text: str) -> dict:
    # Exact numbers: a float would collapse epochs and round a ttl.
    return json.loads(text, parse_float=Decimal)


def expect(what: str, documented, computed) -> None:
    if documented != computed:
        raise Mismatch(f"{what} is {documented!r} in the vector and {computed!r} by the rules")


def text_of(pattern: str, longest: int):
    whole = re.compile(pattern)
    return lambda v: isinstance(v, str) and len(v.encode()) <= longest and bool(whole.fullmatch(v))


def integer(least: int):
    return lambda v: type(v) is int and least <= v < 2**64


def is_label(value) -> bool:
    if not isinstance(value, str) or len(value.encode()) > 128:
        return False
    return not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in value)


def is_object_key(value) -> bool:
    segment = re.compile(r"[a-z0-9_][a-z0-9._-]{0,199}")
    return (
        isinstance(value, str)
        and len(value) <= 512
        and all(segment.fullmatch(s) and not s.endswith(".lock") for s in value.split("/"))
    )


is_instance = text_of("[a-zA-Z0-9][a-zA-Z0-9._-]*", 64)
is_nonce = text_of("[0-9a-f]{32}", 32)
NEEDED = {
    "cluster": lambda v: text_of("[a-z0-9][a-z0-9._-]*", 64)(v) and not v.endswith(".lock"),
    "holder": lambda v: v == "" or is_instance(v),
    "epoch": integer(1),
    "seq": integer(0),
    "ttl_seconds": lambda v: type(v) in (int, Decimal) and 0 < v <= 86400,
}
OPTIONAL = {
    "nonce": is_nonce,
    "last_snapshot_epoch": integer(1),
    **dict.fromkeys(["holder_name", "renewed_at", "key_id", "last_snapshot_at", "mac"], is_label),
}
STATES = ["live", "held_back", "released", "killed", "tombstone"]
OF_SESSION = {"object_key": is_object_key, "life": is_nonce, "state": lambda v: v in STATES}
OF_NAMED_LEASE = {
    "object_key": is_object_key,
    "session": is_instance,
    "session_epoch": integer(1),
    "session_life": is_nonce,
}


class Unreadable(Exception):
    """Content that is no record."""


def once(pairs: list) -> dict:
    names = [name for name, _ in pairs]
    if len(names) != len(set(names)):
        raise Unreadable("a key stands twice")
    return dict(pairs)


def session_key(cluster: str, instance: str) -> str:
    """In a key a capital letter is written as `_` and the small one, and `_` as `__`."""
    return f"{cluster}/sessions/{re.sub('[A-Z_]', lambda m: '_' + m[0].lower(), instance)}.json"


def decode(content: str, kind: str) -> dict:
    """A record of sessions, read as strictly as documented."""
    try:
        record = json.loads(content, parse_float=Decimal, object_pairs_hook=once)
    except ValueError as error:
        raise Unreadable(str(error)) from error
    if not isinstance(record, dict):
        raise Unreadable("no object")
    written = re.search(r'"ttl_seconds"\s*:\s*([^,}\s]*)', content)
    if written and not re.fullmatch(r"\d+(\.\d{1,3})?", written[1]):
        raise Unreadable("ttl_seconds")
    needed = NEEDED | (OF_SESSION if kind == "session" else OF_NAMED_LEASE)
    optional = OPTIONAL | ({"held_back": lambda v: v is True} if kind == "named lease" else {})
    for name, holds in needed.items():
        if name not in record or not holds(record[name]):
            raise Unreadable(name)
    for name, holds in optional.items():
        if name in record and not holds(record[name]):
            raise Unreadable(name)
    if ("last_snapshot_epoch" in record) != ("last_snapshot_at" in record):
        raise Unreadable("half a snapshot mark")
    check_holder(record, kind)
    return record


def check_holder(record: dict, kind: str) -> None:
    holder = record["holder"]
    if kind == "session":
        if (holder != "") != (record["state"] in ("live", "held_back")):
            raise Unreadable("the holder contradicts the state")
        if holder and session_key(record["cluster"], holder) != record["object_key"]:
            raise Unreadable("the holder is not whose session it is")
    elif holder not in ("", record["session"]):
        raise Unreadable("the holder is not whose session it is held under")


def verdict(vector: dict) -> str:
    """What a reader with the vector's secret says of its record, read at the vector's key."""
    try:
        record = decode(vector["record"], vector["kind"])
    except Unreadable:
        return "Unreadable"
    if record["cluster"] != vector["cluster"] or record["object_key"] != vector["object_key"]:
        return "Forged"
    if "mac" not in record or not vector["secret_hex"]:
        return "Unsigned"
    lease_key = hkdf_sha256(bytes.fromhex(vector["secret_hex"]), b"ha-lease")
    mac = hmac.new(lease_key, canonical(record, vector["kind"]), hashlib.sha256).hexdigest()
    return "Authentic" if hmac.compare_digest(mac, record["mac"]) else "Forged"


def check_refused(vector: dict) -> None:
    expect("the verdict", vector["verdict"], verdict(vector))
    if vector["verdict"] == "Authentic":
        raise Mismatch("an authentic record is not refused")


def check_session(vector: dict) -> None:
    """A record of a session or a named lease: the same values, and it is authentic where it is kept."""
    record = parse(vector["record"])
    expect("the verdict", "Authentic", verdict({**vector, "cluster": record["cluster"]}))
    check(vector, vector["kind"])


def check(vector: dict, kind: str = "lease") -> None:
    secret = bytes.fromhex(vector["secret_hex"])
    record = parse(vector["record"])
    lease_key = hkdf_sha256(secret, b"ha-lease")
    id_key = hkdf_sha256(secret, b"ha-key-id")
    covered = canonical(record, kind)
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


def check_golden(file: str, vector: dict) -> None:
    """The golden file is the record of its vector, to the byte."""
    expect(f"golden/{file}", (GOLDEN / file).read_text(), vector["record"])


def load(directory: pathlib.Path, what: str) -> dict:
    vectors = {path.name: json.loads(path.read_text()) for path in sorted(directory.glob("*.json"))}
    if len(vectors) < AT_LEAST[what]:
        sys.exit(f"found {len(vectors)} vectors in {directory}, at least {AT_LEAST[what]} are needed")
    return vectors


def main() -> int:
    directory = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else VECTORS
    leases, sessions = load(directory, "lease"), load(SESSION_VECTORS, "session")
    refused = load(SESSION_VECTORS / "refused", "refused")
    checks = [(name, lambda v=vector: check(v)) for name, vector in leases.items()]
    checks += [(name, lambda v=vector: check_session(v)) for name, vector in sessions.items()]
    checks += [(name, lambda v=vector: check_refused(v)) for name, vector in refused.items()]
    checks.append(("all vectors", lambda: check_distinct(leases | sessions)))
    for file, vector in [
        ("lease-v1.json", leases["golden.json"]),
        ("session-v1.json", sessions["session-golden.json"]),
        ("named-lease-v1.json", sessions["named-golden.json"]),
    ]:
        checks.append((f"golden/{file}", lambda f=file, v=vector: check_golden(f, v)))
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
