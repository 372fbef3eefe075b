#!/bin/sh
# Before the last version is removed: the service ends. dpkg says "remove", rpm says 0. On an
# upgrade (dpkg "upgrade", rpm 1) it continues with the old program until it is restarted.
set -eu
case "${1:-}" in
remove | 0)
  if [ -d /run/systemd/system ]; then
    systemctl disable --now callgate.service
  fi
  ;;
esac
