#!/usr/bin/env bash
# Installs, starts and stops a PostgreSQL on loopback, for `cargo test -p examples --test sql`.
#   tests/postgres.sh install | start | stop | env
# Installing needs root and apt. As root the server runs as the user `postgres`, who must reach the directory:
# $HA_POSTGRES (default: in the system's directory for temporary files). `env` prints the variable by which the
# tests find it, as a shell assignment:
#   tests/postgres.sh install && tests/postgres.sh start
#   env $(tests/postgres.sh env) cargo test -p examples --test sql
set -euo pipefail
D=${HA_POSTGRES:-${TMPDIR:-/tmp}/holdfast-postgres-$(id -u)} PORT=${HA_POSTGRES_PORT:-5439}

bin() { ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1; }
# As whom the server runs: it refuses to be root.
as() { if [ "$(id -u)" = 0 ]; then setpriv --reuid postgres --regid postgres --clear-groups -- "$@"; else "$@"; fi; }

case ${1:?what to do: install, start, stop or env} in
  install)
    [ -n "$(bin)" ] && exit 0
    # No cluster of the system's own beside ours.
    mkdir -p /etc/postgresql-common
    [ -e /etc/postgresql-common/createcluster.conf ] || echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql >/dev/null ;;
  start)
    rm -rf "$D"; mkdir -p "$D"; [ "$(id -u)" = 0 ] && chown postgres "$D"
    cd "$D"
    # Only loopback reaches it, and there is nothing in it: no passwords.
    as "$(bin)/initdb" -D "$D/data" -U postgres -A trust >"$D/initdb.log"
    as "$(bin)/pg_ctl" -D "$D/data" -l "$D/server.log" -w -t 60 start \
      -o "-p $PORT -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c max_connections=50" >/dev/null
    echo 'postgres is up' ;;
  stop)
    [ -d "$D/data" ] || exit 0
    cd "$D"; as "$(bin)/pg_ctl" -D "$D/data" -m immediate -w stop >/dev/null || true ;;
  env) echo "HA_TEST_POSTGRES_URL=postgres://postgres@127.0.0.1:$PORT/postgres" ;;
  *) echo "unknown: $1" >&2; exit 2 ;;
esac
