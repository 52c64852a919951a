#!/usr/bin/env bash
# Starts the app and the proxy before it. When one of them ends, the other is ended too, and the container.
# NORMVIZ_PROXY  networks of a host's own proxies before this one, as in "10.0.0.0/8 fd00::/8": visitors are
#                then told apart by the X-Forwarded-For that these write, else by the address that connects
set -u
folder=$(mktemp -d)
cp "$(dirname "$0")/nginx.conf" "$folder"
for network in ${NORMVIZ_PROXY:-}; do echo "set_real_ip_from $network;"; done > "$folder/proxies.conf"
# uvicorn believes X-Forwarded-For from the proxy alone.
export FORWARDED_ALLOW_IPS=127.0.0.1
normviz app --host 127.0.0.1 --port 8502 --no-browser &
nginx -p "$folder" -e stderr -c nginx.conf &
trap 'stopped=yes; kill $(jobs -p)' TERM INT
wait -n
kill $(jobs -p) 2> /dev/null
wait
[ -n "${stopped:-}" ]
