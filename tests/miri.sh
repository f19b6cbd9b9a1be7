#!/usr/bin/env bash
# Runs the tests of `fencing` and of `lease-core` without default features under Miri, which finds
# undefined behaviour and weak-memory executions that no hardware here shows. Without Miri nothing is
# run, and the last line says so by name.
set -euo pipefail
cd "$(dirname "$0")/.."

toolchain=
for candidate in nightly stable; do
  if cargo "+$candidate" miri --version >/dev/null 2>&1; then
    toolchain=$candidate
    break
  fi
done
if [ -z "$toolchain" ]; then
  why=$(cargo miri --version 2>&1 | sed -n '/^error: / { s///p; q }' || true)
  echo "skipped: miri is not installed (${why:-no toolchain has it}); rustup component add miri --toolchain nightly"
  exit 0
fi

# Deadlines and files need the real clock and the real file system.
export MIRIFLAGS="${MIRIFLAGS:-} -Zmiri-disable-isolation" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/miri"
cargo "+$toolchain" miri test --locked -p fencing --lib --test fence --test source
cargo "+$toolchain" miri test --locked -p lease-core --no-default-features --lib
echo "miri: done"
