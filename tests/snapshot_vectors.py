#!/usr/bin/env python3
"""The vectors of the snapshot format, by an implementation that shares no code with the crate.

    tests/snapshot_vectors.py            makes every vector anew, and compares with what is checked in
    tests/snapshot_vectors.py --write    writes them to snapshot-format/tests/vectors

Python's standard library alone: HKDF, age's header and STREAM (https://c2sp.org/age), ChaCha20-Poly1305
(RFC 8439). What is random in a real snapshot is a digest of the vector's name here.

A vector is a text of `field: value` lines, an empty line, and the object as a store keeps it:

    about     what it shows
    secret    the cluster's secret, hexadecimal
    key       the key it is kept under; the layout is that of application `orders`, cluster `prod`
    verdict   what reading its start says
    open      `ok` or `headerless` and the SHA-256 of the database, or why it does not open

Prints `N passed, M failed`, and ends with status 1 if anything failed.
"""

import base64
import hashlib
import hmac
import json
import struct
import sys
from pathlib import Path

VECTORS = Path(__file__).resolve().parent.parent / "snapshot-format/tests/vectors"
SECRET = bytes.fromhex("551fde2fa1e9e759608ba48de7e14df7397a762c2a88c4ce00e3a08fa8662453")
OTHER_SECRET = bytes(range(32))
CHUNK = 64 * 1024
TAG = 16
DATABASE = b"SQLite format 3\0 as a sample"
AT = "2026-10-12T09:58:41.517Z"


# Primitives.

def hkdf(ikm, info, salt=b"", length=32):
    key = hmac.digest(salt or bytes(32), ikm, "sha256")
    out, block, counter = b"", b"", 1
    while len(out) < length:
        block = hmac.digest(key, block + info + bytes([counter]), "sha256")
        out, counter = out + block, counter + 1
    return out[:length]


def chacha20_block(key, counter, nonce):
    start = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *struct.unpack("<8L", key), counter,
             *struct.unpack("<3L", nonce))
    x = list(start)
    for _ in range(10):
        for a, b, c, d in ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
                           (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)):
            xa, xb, xc, xd = x[a], x[b], x[c], x[d]
            xa = (xa + xb) & 0xFFFFFFFF; xd ^= xa; xd = (xd << 16 | xd >> 16) & 0xFFFFFFFF
            xc = (xc + xd) & 0xFFFFFFFF; xb ^= xc; xb = (xb << 12 | xb >> 20) & 0xFFFFFFFF
            xa = (xa + xb) & 0xFFFFFFFF; xd ^= xa; xd = (xd << 8 | xd >> 24) & 0xFFFFFFFF
            xc = (xc + xd) & 0xFFFFFFFF; xb ^= xc; xb = (xb << 7 | xb >> 25) & 0xFFFFFFFF
            x[a], x[b], x[c], x[d] = xa, xb, xc, xd
    return struct.pack("<16L", *((a + b) & 0xFFFFFFFF for a, b in zip(x, start)))


def poly1305(key, message):
    r = int.from_bytes(key[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    total, prime = 0, (1 << 130) - 5
    for at in range(0, len(message), 16):
        block = message[at:at + 16] + b"\1"
        total = (total + int.from_bytes(block, "little")) * r % prime
    return ((total + int.from_bytes(key[16:], "little")) & ((1 << 128) - 1)).to_bytes(16, "little")


def seal_chunk(key, nonce, plaintext):
    blocks = (len(plaintext) + 63) // 64
    stream = b"".join(chacha20_block(key, 1 + n, nonce) for n in range(blocks))[:len(plaintext)]
    size = len(plaintext)
    sealed = (int.from_bytes(plaintext, "little") ^ int.from_bytes(stream, "little")).to_bytes(size, "little")
    padded = sealed + bytes(-size % 16) + struct.pack("<QQ", 0, size)
    return sealed + poly1305(chacha20_block(key, 0, nonce)[:32], padded)


def b64(data):
    return base64.b64encode(data).rstrip(b"=")


# age.

class Age:
    """One sealed object in its pieces, so that a vector can bend any of them."""

    def __init__(self, name, plaintext, secret=SECRET, work=10, work_text=None, derive=True, more=b"",
                 stanzas=None, version=b"v1", last=True, empty_last=False):
        def draw(what, size):
            return hashlib.sha256(f"{what} of {name}".encode()).digest()[:size]

        file_key, salt, self.nonce = draw("file key", 16), draw("salt", 16), draw("nonce", 16)
        passphrase = hkdf(secret, b"ha-snapshot").hex().encode()
        if derive:
            wrap = hashlib.scrypt(passphrase, salt=b"age-encryption.org/v1/scrypt" + salt, n=1 << work, r=8, p=1,
                                  dklen=32, maxmem=1 << 30)
            body = seal_chunk(wrap, bytes(12), file_key)
        else:
            body = draw("body", 32)
        work_text = work_text or str(work).encode()
        stanza = b"-> scrypt " + b64(salt) + b" " + work_text + b"\n" + b64(body) + b"\n"
        head = b"age-encryption.org/" + version + b"\n" + (stanzas or stanza) + more + b"---"
        mac = hmac.digest(hkdf(file_key, b"header"), head, "sha256")
        self.header = head + b" " + b64(mac) + b"\n"
        key = hkdf(file_key, b"payload", salt=self.nonce)
        pieces = [plaintext[at:at + CHUNK] for at in range(0, len(plaintext), CHUNK)] or [b""]
        if empty_last:
            pieces.append(b"")
        self.chunks = []
        for number, piece in enumerate(pieces):
            is_last = last and number == len(pieces) - 1
            nonce = number.to_bytes(11, "big") + bytes([is_last])
            self.chunks.append(seal_chunk(key, nonce, piece))

    def bytes(self):
        return self.header + self.nonce + b"".join(self.chunks)


# Snapshots.

def line(**fields):
    header = {"format": 1, "cluster": "prod", "epoch": 7, "instance_id": "s-1", "created_at": AT}
    header.update(fields)
    return json.dumps({k: v for k, v in header.items() if v is not None}, separators=(",", ":")).encode()


def start(text=None, application=b"orders", **fields):
    return application + b"-ha-snapshot\n" + (line(**fields) if text is None else text) + b"\n"


def key(name="20261012T095841.517Z-e7", application="orders", cluster="prod"):
    return f"_{application}/metadata/ha/{cluster}/{application}-{name}.db.age"


def sample(size):
    return (hashlib.sha256(b"sample").digest() * (size // 32 + 1))[:size]


vectors = {}


def vector(name, about, content, verdict, opened, at=None):
    """`opened` is the database, or a text that says why there is none."""
    if isinstance(opened, bytes):
        opened = ("headerless " if verdict == "legacy" else "ok ") + hashlib.sha256(opened).hexdigest()
    fields = {"about": about, "secret": SECRET.hex(), "key": at or key(), "verdict": verdict, "open": opened}
    assert name not in vectors, name
    vectors[name] = "".join(f"{k}: {v}\n" for k, v in fields.items()).encode() + b"\n" + content


def refused(name, about, content, why, at=None):
    vector(name, about, content, "refused " + why, "refused " + why, at)


def good_ones():
    def ok(name, about, plaintext, database, at=None, **how):
        vector(name, about, Age(name, plaintext, **how).bytes(), "verified", database, at)

    ok("ok-minimal", "one small chunk", start() + DATABASE, DATABASE)
    ok("ok-empty-database", "the header alone", start(), b"")
    ok("ok-epoch-max", "the largest epoch", start(epoch=2**64 - 1) + DATABASE, DATABASE,
       key("20261012T095841.517Z-e18446744073709551615"))
    ok("ok-epoch-above-2-53", "an epoch that a float cannot hold", start(epoch=2**53 + 1) + DATABASE, DATABASE,
       key("20261012T095841.517Z-e9007199254740993"))
    ok("ok-suffix", "a key that has a suffix", start(suffix="00000000000000ab") + DATABASE, DATABASE,
       key("20261012T095841.517Z-e7-00000000000000ab"))
    ok("ok-first-moment", "the earliest time", start(created_at="1970-01-01T00:00:00.000Z") + DATABASE, DATABASE,
       key("19700101T000000.000Z-e7"))
    ok("ok-last-moment", "the latest time", start(created_at="9999-12-31T23:59:59.999Z") + DATABASE, DATABASE,
       key("99991231T235959.999Z-e7"))
    ok("ok-unknown-fields", "fields of a later version", start(later=[1, {"x": None}]) + DATABASE, DATABASE)
    ok("ok-escapes", "text spelled with escapes",
       start(line().replace(b'"prod"', b'"\\u0070rod"').replace(b'"epoch"', b'"\\u0065poch"')) + DATABASE, DATABASE)
    ok("ok-longest-line", "a second line of 4096 bytes with its line break",
       start(line()[:-1] + b" " * (4095 - len(line())) + b"}") + DATABASE, DATABASE)
    ok("ok-work-factor-1", "less work than is written here", start() + DATABASE, DATABASE, work=1)
    full = sample(CHUNK - len(start()))
    ok("ok-one-full-chunk", "a last chunk that is full", start() + full, full)
    more = sample(CHUNK - len(start()) + 100)
    ok("ok-two-chunks", "a second chunk of 100 bytes", start() + more, more)
    vector("ok-legacy", "a database without a header", Age("ok-legacy", DATABASE).bytes(), "legacy", DATABASE)


def cut_and_altered():
    small = Age("small", start() + DATABASE)
    whole = small.bytes()
    head, body = len(small.header), len(small.header) + 16
    for name, length in (("1-byte", 1), ("16-bytes", 16), ("first-line", 22), ("in-the-header", 100)):
        refused(f"cut-{name}", f"the first {length} bytes alone", whole[:length], "does-not-open cut")
    refused("cut-empty", "no byte at all", b"", "does-not-open cut")
    refused("cut-behind-the-header", "age's header alone", whole[:head], "does-not-open cut")
    refused("cut-in-the-nonce", "a nonce of 15 bytes", whole[:body - 1], "does-not-open cut")
    refused("cut-behind-the-nonce", "no chunk", whole[:body], "does-not-open cut")
    refused("cut-1-byte-of-a-chunk", "a chunk that is shorter than its tag", whole[:body + 1], "does-not-open altered")
    refused("cut-16-bytes-of-a-chunk", "a chunk as long as its tag", whole[:body + 16], "does-not-open altered")
    refused("cut-by-1-byte", "all but the last byte", whole[:-1], "does-not-open altered")
    refused("cut-by-16-bytes", "all but the last tag", whole[:-16], "does-not-open altered")

    large = Age("large", start() + sample(CHUNK - len(start()) + 100))
    bytes_of = large.bytes()
    boundary = body + CHUNK + TAG
    for name, length, why in (("at-the-chunk-boundary", boundary, "cut"), ("1-byte-behind-it", boundary + 1, "altered"),
                              ("16-bytes-behind-it", boundary + 16, "altered"),
                              ("last-byte-of-two-chunks", len(bytes_of) - 1, "altered")):
        vector(f"cut-{name}", "the header is whole, something behind it is not", bytes_of[:length], "verified",
               "damaged " + why)
    refused("cut-before-the-chunk-boundary", "a first chunk that lacks its last byte", bytes_of[:boundary - 1],
            "does-not-open altered")

    def flip(content, at):
        # In age's header it stays a digit of base64.
        other = content[at] ^ 1 if at >= head or at == 0 else ord("A") if content[at] != ord("A") else ord("B")
        return content[:at] + bytes([other]) + content[at + 1:]

    for name, at, why in (("magic", 0, "not-sealed"), ("salt", 35, "wrong-secret"), ("body", 70, "wrong-secret"),
                          ("mac", 130, "altered"), ("nonce", head, "altered"), ("header", body, "altered"),
                          ("database", len(whole) - 17, "altered"), ("tag", len(whole) - 1, "altered")):
        refused(f"altered-{name}", f"another byte at {at}", flip(whole, at), "does-not-open " + why)
    vector("altered-second-chunk", "one bit behind the first chunk", flip(bytes_of, boundary + 50), "verified",
           "damaged altered")
    refused("appended-byte", "a byte more", whole + b"\0", "does-not-open altered")
    refused("appended-copy", "the same object twice", whole + whole, "does-not-open altered")
    full = Age("full", start() + sample(CHUNK - len(start())))
    vector("appended-to-a-full-chunk", "a byte behind a last chunk that is full", full.bytes() + b"\0", "verified",
           "damaged altered")
    vector("no-last-chunk", "no chunk says that it is the last",
           Age("no-last-chunk", start() + sample(CHUNK - len(start())), last=False).bytes(), "verified", "damaged cut")
    vector("empty-last-chunk", "a last chunk without a byte, which age forbids",
           Age("empty-last-chunk", start() + sample(CHUNK - len(start())), empty_last=True).bytes(), "verified",
           "damaged altered")
    large.chunks.reverse()
    refused("chunks-swapped", "the second chunk first", large.bytes(), "does-not-open altered")


def names():
    content = Age("names", start() + DATABASE).bytes()
    at, epoch = "20261012T095841.517Z", "other-epoch 7"
    refused("name-other-epoch", "copied to a higher epoch", content, epoch, key(f"{at}-e13"))
    refused("name-largest-epoch", "copied to the largest epoch", content, epoch, key(f"{at}-e18446744073709551615"))
    refused("name-other-time", "copied to a later time", content, f"other-time {AT}", key("20261012T095841.518Z-e7"))
    refused("name-suffix-added", "copied to a suffix", content, "other-suffix", key(f"{at}-e7-0000000000000001"))
    suffixed = Age("suffixed", start(suffix="00000000000000ab") + DATABASE).bytes()
    refused("name-suffix-removed", "copied to no suffix", suffixed, "other-suffix")
    refused("name-other-suffix", "copied to another suffix", suffixed, "other-suffix",
            key(f"{at}-e7-00000000000000ac"))
    for name, about, plaintext, why in (
        ("other-cluster", "a snapshot of cluster c2", start(cluster="c2"), "other-cluster"),
        ("other-application", "a snapshot of application bills", start(application=b"bills"), "other-application"),
    ):
        refused(name, about, Age(name, plaintext + DATABASE).bytes(), why)
    for name, about, spelled in (
        ("leap-second", "second 60", "20261012T235960.000Z-e7"),
        ("offset", "UTC as an offset", "20261012T095841.517+00:00-e7"),
        ("year-10000", "five digits of a year", "100000101T000000.000Z-e7"),
        ("whole-second", "no milliseconds", "20261012T095841Z-e7"),
        ("epoch-0", "epoch 0", f"{at}-e0"),
        ("leading-zero", "an epoch with a leading zero", f"{at}-e07"),
        ("epoch-2-64", "an epoch above 2^64 - 1", f"{at}-e18446744073709551616"),
        ("short-suffix", "a suffix of 15 digits", f"{at}-e7-00000000000000a"),
        ("upper-suffix", "a suffix in capitals", f"{at}-e7-00000000000000AB"),
    ):
        vector(f"no-name-{name}", about, content, "no-snapshot", "no-snapshot", key(spelled))
    for name, at in (("cluster", key(cluster="prod2")), ("application", key(application="bills")),
                     ("deeper", key().replace("/prod/", "/prod/x/"))):
        vector(f"no-name-other-{name}", f"a key of another {name}", content, "no-snapshot", "no-snapshot", at)


def seals():
    def sealed(name, about, why, plaintext=start() + DATABASE, **how):
        refused(f"seal-{name}", about, Age(f"seal-{name}", plaintext, **how).bytes(), "does-not-open " + why)

    sealed("other-secret", "another cluster's secret", "wrong-secret", secret=OTHER_SECRET)
    sealed("work-factor-11", "one above the limit", "too-much-work 11", work=11)
    sealed("work-factor-18", "what `age -p` takes; opens once the limit is raised", "too-much-work 18", work=18)
    sealed("work-factor-30", "1 TiB of memory", "too-much-work 30", work=30, derive=False)
    sealed("work-factor-63", "more than there is", "too-much-work 63", work=63, derive=False)
    for name, text in (("0", b"0"), ("010", b"010"), ("plus", b"+10"), ("256", b"256"), ("hex", b"0xa")):
        sealed(f"work-factor-spelled-{name}", "a work factor that is no number from 1", "not-sealed",
               work_text=text)
    x25519 = b"-> X25519 " + b64(bytes(range(32))) + b"\n" + b64(bytes(32)) + b"\n"
    sealed("x25519", "another kind of recipient", "foreign-recipient", stanzas=x25519)
    sealed("two-kinds", "a passphrase and a recipient", "not-sealed", more=x25519)
    twice = b"-> scrypt " + b64(bytes(16)) + b" 10\n" + b64(bytes(32)) + b"\n"
    sealed("two-passphrases", "two stanzas of scrypt", "not-sealed", more=twice)
    sealed("version-2", "age, version 2", "not-sealed", version=b"v2")
    sealed("long-header", "a header of more than 512 bytes", "not-sealed", stanzas=x25519 * 6)
    armored = b"-----BEGIN AGE ENCRYPTED FILE-----\n"
    body = base64.encodebytes(Age("armored", start() + DATABASE).bytes())
    refused("seal-armored", "as text", armored + body + armored.replace(b"BEGIN", b"END"), "does-not-open not-sealed")
    refused("seal-none", "not sealed at all", start() + DATABASE, "does-not-open not-sealed")
    refused("seal-zeros", "4096 zero bytes", bytes(4096), "does-not-open not-sealed")


def headers():
    def bad(name, about, why, plaintext):
        refused(f"header-{name}", about, Age(f"header-{name}", plaintext).bytes(), "bad-header " + why)

    bad("empty-plaintext", "nothing under the seal", "cut", b"")
    bad("magic-cut", "half of the first line", "cut", b"orders-ha-sn")
    bad("magic-alone", "the first line alone", "cut", b"orders-ha-snapshot\n")
    bad("no-line-break-short", "a second line that never ends", "cut", start()[:-1])
    bad("no-line-break", "a second line of 8 KiB that never ends", "no-line-break", start()[:-1] + b" " * 8192)
    bad("4097-bytes", "a second line of 4097 bytes", "no-line-break",
        start(line()[:-1] + b" " * (4096 - len(line())) + b"}"))
    bad("64-kib", "a second line of 64 KiB, well-formed", "no-line-break",
        start(line()[:-1] + b',"x":"' + b"x" * CHUNK + b'"}'))
    text = line()
    for name, about, bent in (
        ("format-0", "format 0", line(format=0)),
        ("format-text", "a format that is a text", line(format="1")),
        ("format-fraction", "a format with a fraction", text.replace(b":1,", b":1.0,")),
        ("format-missing", "no format", line(format=None)),
        ("cluster-missing", "no cluster", line(cluster=None)),
        ("epoch-missing", "no epoch", line(epoch=None)),
        ("epoch-0", "epoch 0", line(epoch=0)),
        ("epoch-2-64", "an epoch above 2^64 - 1", line(epoch=2**64)),
        ("epoch-text", "an epoch that is a text", line(epoch="7")),
        ("duplicate-epoch", "the epoch twice", text.replace(b'"epoch":7', b'"epoch":7,"epoch":7')),
        ("duplicate-escaped", "the epoch twice, once with an escape",
         text.replace(b'"epoch":7', b'"epoch":7,"\\u0065poch":7')),
        ("duplicate-unknown", "an unknown field twice", text[:-1] + b',"x":1,"x":1}'),
        ("leap-second", "second 60", line(created_at="2026-10-12T23:59:60.000Z")),
        ("year-10000", "five digits of a year", line(created_at="10000-01-01T00:00:00.000Z")),
        ("offset", "UTC as an offset", line(created_at="2026-10-12T09:58:41.517+00:00")),
        ("suffix-empty", "a suffix without a digit", line(suffix="")),
        ("instance-empty", "no instance id", line(instance_id="")),
        ("array", "the fields as an array", b'[1,"prod",7,"s-1","' + AT.encode() + b'"]'),
        ("trailing", "a byte behind the object", text + b"x"),
        ("bad-utf-8", "bytes that are no text", text.replace(b"s-1", b"s-\xff")),
        ("bom", "a byte order mark", b"\xef\xbb\xbf" + text),
        ("nested", "1500 levels deep", text[:-1] + b',"x":' + b"[" * 1500 + b"]" * 1500 + b"}"),
        ("no-json", "no JSON at all", b"prod 7 s-1"),
    ):
        bad(name, about, "unreadable", start(bent) + DATABASE)
    for name, about, bent, number in (
        ("format-2", "a later format", b'{"format":2,"cluster":7}', 2),
        ("format-largest", "the last of all formats", b'{"format":18446744073709551615}', 2**64 - 1),
    ):
        content = Age(f"header-{name}", start(bent) + DATABASE).bytes()
        vector(f"header-{name}", about, content, f"unchecked newer-format {number}", f"newer-format {number}")


def main():
    for section in (good_ones, cut_and_altered, names, seals, headers):
        section()
    if sys.argv[1:] == ["--write"]:
        VECTORS.mkdir(parents=True, exist_ok=True)
        for stale in VECTORS.glob("*.snapshot"):
            stale.unlink()
        for name, content in vectors.items():
            (VECTORS / f"{name}.snapshot").write_bytes(content)
    passed, failures = 0, []
    found = {path.stem: path.read_bytes() for path in VECTORS.glob("*.snapshot")}
    for name in sorted(vectors.keys() | found.keys()):
        if vectors.get(name) == found.get(name):
            passed += 1
        else:
            failures.append(f"{name}.snapshot is not what this script makes")
    bad = sum(1 for text in vectors.values() if b"\nopen: ok " not in text and b"\nopen: headerless " not in text)
    print("\n".join(failures + [f"{len(vectors)} vectors, {bad} of them negative"]))
    print(f"{passed} passed, {len(failures)} failed")
    sys.exit(1 if failures else 0)


main()
