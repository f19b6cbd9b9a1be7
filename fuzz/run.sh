#!/usr/bin/env bash
# Runs every fuzz target for SECONDS (default 300), one after the other, and tells in one line each
# how often it ran, what it covered and what it found. Exits 1 if anything was found.
#
#   fuzz/run.sh [SECONDS] [TARGET...]
#
# What libFuzzer makes up goes to fuzz/grown/, what crashes to fuzz/artifacts/; the seeds stay as they
# are. Works on a stable toolchain. No target has unsafe code of ours to watch, so no sanitizer is
# built in: the time goes into executions. Set SANITIZER=address for one.
set -euo pipefail
cd "$(dirname "$0")"
seconds=${1:-300}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] && targets=("$@") || targets=(record session_record history machine snapshot audit)
export RUSTC_BOOTSTRAP=1 CARGO_TERM_COLOR=never
command -v cargo-fuzz >/dev/null || cargo install --quiet --locked cargo-fuzz

# Above these lengths an input says nothing new.
declare -A length_max=([record]=4096 [session_record]=4096 [history]=4096 [machine]=400 [snapshot]=8192 [audit]=2048)
# `cargo fuzz` looks for the fuzz directory below the current one.
cd ..
found=0
for target in "${targets[@]}"; do
  grown=fuzz/grown/$target seeds=fuzz/corpus/$target log=fuzz/grown/$target.log
  mkdir -p "$grown"
  status=0
  cargo fuzz run --sanitizer "${SANITIZER:-none}" "$target" "$grown" "$seeds" -- \
    -max_total_time="$seconds" -max_len="${length_max[$target]}" -timeout=20 -rss_limit_mb=2048 \
    -print_final_stats=1 -verbosity=1 >"$log" 2>&1 || status=$?
  executions=$(awk '/^stat::number_of_executed_units:/ { print $2 }' "$log")
  covered=$(grep -oE 'cov: [0-9]+ ft: [0-9]+' "$log" | tail -1 || true)
  printf '%-14s %12s executions  %-22s %s crashes\n' \
    "$target" "${executions:-?}" "${covered:-?}" "$((status != 0))"
  if [ "$status" -ne 0 ]; then
    found=1
    tail -40 "$log" >&2
  fi
done
exit "$found"
