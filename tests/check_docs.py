#!/usr/bin/env python3
"""Holds the documents against the sources.

- Every test that docs/*.md names (`file.rs::test`, with as much of the path as makes it unique) is a
  function, a trial, a case of the conformance suite or a `rule!` of that file.
- Every case that a source names (`case_NN_…`) has a row in docs/failure-modes.md.
- The first block of Rust in the README is examples/quickstart.rs, where that file is there.

Prints `N passed, M failed`, and ends with status 1 if anything failed. Another checkout to look at may be
given as the only argument.
"""

import re
import sys
from pathlib import Path

ROOT = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()

NAMED = re.compile(r"`([\w./-]+\.rs)::(\w+)`")
DEFINED = re.compile(
    r"""\bfn\s+(\w+)                            # a test, or a case of the conformance suite
      | \b(?:test|skippable)\(\s*"([^"]+)"      # a trial with a name of its own
      | \brule!\(\s*(\w+)                       # a rule and the schedule that needs it
    """,
    re.VERBOSE,
)
CASE = re.compile(r"\bcase_(\d+)_")
ROW = re.compile(r"^\| (\d+) \|", re.MULTILINE)

passed = 0
failures = []


def check(holds, otherwise):
    global passed
    if holds:
        passed += 1
    else:
        failures.append(otherwise)


def read(path):
    return path.read_text(encoding="utf-8")


def sources():
    """Every Rust file by its path, without what was built."""
    for path in sorted(ROOT.rglob("*.rs")):
        inside = path.relative_to(ROOT)
        if not {"target", ".git"} & set(inside.parts):
            yield inside, read(path)


def names(text):
    return {name for found in DEFINED.finditer(text) for name in found.groups() if name}


def check_named_tests(files):
    for document in sorted((ROOT / "docs").glob("*.md")):
        where = document.relative_to(ROOT)
        for file, test in sorted(set(NAMED.findall(read(document)))):
            matches = [path for path in files if f"/{path.as_posix()}".endswith(f"/{file}")]
            if len(matches) != 1:
                check(False, f"{where}: {file} is the end of {len(matches)} paths, not of one")
            else:
                found = test in names(files[matches[0]])
                check(found, f"{where}: there is no {test} in {matches[0]}")


def check_cases(files):
    rows = set(ROW.findall(read(ROOT / "docs/failure-modes.md")))
    cases = {number for text in files.values() for number in CASE.findall(text)}
    for number in sorted(cases):
        check(number in rows, f"docs/failure-modes.md: case {number} has a test and no row")


def check_quickstart():
    example = ROOT / "examples/quickstart.rs"
    if not example.exists():
        return
    block = re.search(r"^```rust\n(.*?)^```$", read(ROOT / "README.md"), re.MULTILINE | re.DOTALL)
    same = block is not None and block.group(1) == read(example)
    check(same, "README.md: the first block of Rust is not examples/quickstart.rs")


def main():
    files = dict(sources())
    check_named_tests(files)
    check_cases(files)
    check_quickstart()
    for failure in failures:
        print(failure)
    print(f"{passed} passed, {len(failures)} failed")
    sys.exit(1 if failures else 0)


main()
