#!/bin/sh
# After an installation or an upgrade: systemd reads the unit. Nothing is started: the gateway has
# no callers until a key is made (docs/install.md).
set -eu
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
