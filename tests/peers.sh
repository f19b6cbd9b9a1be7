#!/usr/bin/env bash
# Installs, starts and stops etcd, Redis and PostgreSQL on loopback, to measure a lease beside them:
#   tests/peers.sh install NAME...   start NAME...   stop NAME...   env NAME...     (or `all`)
# Installing needs root and apt. State is under $HA_PEERS (default: in the system's directory for temporary
# files; give one on the disk that the leases are measured on), the ports are those from $HA_PEERS_PORT on
# (default 17580). PostgreSQL is tests/postgres.sh. `env` prints the variables by which they are found:
#   tests/peers.sh install all && tests/peers.sh start all
#   env $(tests/peers.sh env all) cargo run --release -p benches --features peers -- --only peers
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
D=${HA_PEERS:-${TMPDIR:-/tmp}/holdfast-peers-$(id -u)} PORT=${HA_PEERS_PORT:-17580}

apt() { dpkg -s "$@" >/dev/null 2>&1 || { apt-get update -qq; DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }; }
up() { for _ in $(seq 100); do "$@" >/dev/null 2>&1 && return 0; sleep 0.1; done; echo "no answer: $*" >&2; return 1; }
bg() { local name=$1; shift; nohup "$@" >"$D/$name.log" 2>&1 & echo $! >"$D/$name.pid"; }

install_one() { case $1 in
  etcd) apt etcd-server ;;
  redis) apt redis-server redis-tools ;;
  postgres) "$here/postgres.sh" install ;;
  *) echo "unknown peer $1" >&2; exit 2 ;; esac; }

start_one() { mkdir -p "$D"; case $1 in
  # As it comes: every entry of its log is synced before it is answered.
  etcd) rm -rf "$D/etcd"; bg etcd etcd --data-dir "$D/etcd" --listen-client-urls "http://127.0.0.1:$PORT" \
      --advertise-client-urls "http://127.0.0.1:$PORT" --listen-peer-urls "http://127.0.0.1:$((PORT + 2))" \
      --initial-advertise-peer-urls "http://127.0.0.1:$((PORT + 2))" --initial-cluster "default=http://127.0.0.1:$((PORT + 2))"
    up curl -sf "http://127.0.0.1:$PORT/health" ;;
  redis) rm -rf "$D/redis"; mkdir -p "$D/redis"; bg redis redis-server --port $((PORT + 1)) --bind 127.0.0.1 \
      --dir "$D/redis" --appendonly yes --appendfsync always --save ''
    up redis-cli -p $((PORT + 1)) ping ;;
  postgres) "$here/postgres.sh" start; return ;;
  *) echo "unknown peer $1" >&2; exit 2 ;; esac; echo "$1 is up"; }

runs() { case $(ps -o stat= -p "$1") in '' | Z*) return 1 ;; esac; }
stop_one() { [ "$1" = postgres ] && { "$here/postgres.sh" stop; return; }
  [ -f "$D/$1.pid" ] || return 0; local p; p=$(cat "$D/$1.pid"); rm -f "$D/$1.pid"; kill "$p" 2>/dev/null || return 0
  for _ in $(seq 50); do runs "$p" || return 0; sleep 0.1; done; kill -9 "$p" 2>/dev/null || true; }

env_one() { case $1 in
  etcd) echo "HA_TEST_ETCD_URL=http://127.0.0.1:$PORT" ;;
  redis) echo "HA_TEST_REDIS_URL=redis://127.0.0.1:$((PORT + 1))/" ;;
  postgres) "$here/postgres.sh" env ;;
  *) echo "unknown peer $1" >&2; exit 2 ;; esac; }

verb=${1:?what to do: install, start, stop or env}; shift
[ "${1:-}" = all ] && set -- etcd redis postgres
for name in "$@"; do "${verb}_one" "$name"; done
