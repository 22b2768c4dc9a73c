#!/usr/bin/env bash
# check_debian.sh RELEASE (trixie): on a bare Debian of that release, builds the last commit and
# runs make bench SUITE=quick and make test. It is a chroot in build/RELEASE, made by debootstrap;
# needs root. The mounts are of a namespace of their own and end with it. KEEP=1 goes on in the
# clone and the build folder of the time before.
set -euo pipefail
source "$(dirname "$0")/common.sh"

release=${1:-trixie}
system=$root/build/$release
project=$system/srv/stepladder

[[ $(id -u) == 0 ]] || die "check_debian.sh: mounts and chroot need root"
if ! command -v debootstrap >/dev/null; then
  apt-get install -y --no-install-recommends debootstrap >/dev/null ||
    die "check_debian.sh: debootstrap is not installed, and apt-get could not install it"
fi
if [[ ! -e $system/made ]]; then
  say "Making a bare Debian $release in $system"
  rm -rf "$system"
  mkdir -p "$system"
  debootstrap --variant=minbase --include=ca-certificates,git,make "$release" "$system" \
    >"$system.log" 2>&1 || die "debootstrap failed; its output is in $system.log"
  touch "$system/made"
fi
cp -L /etc/resolv.conf "$system/etc/resolv.conf"
# As the system outside trusts them, so that downloads work as there.
cp -L /etc/ssl/certs/ca-certificates.crt "$system/etc/ssl/certs/"
[[ ! -e /etc/pip.conf ]] || cp /etc/pip.conf "$system/etc/"

if [[ -n ${KEEP:-} && -d $project ]]; then
  git -C "$project" fetch --quiet "$root" HEAD
  git -C "$project" checkout --quiet --force FETCH_HEAD
else
  rm -rf "$project"
  git clone --quiet "$root" "$project"
fi

say "Debian $release: make bench SUITE=quick, make test (commit $(git rev-parse --short HEAD))"
# shellcheck disable=SC2016 # $1 and $2 are for the inner shell to expand
unshare --mount --pid --fork bash -euo pipefail -c '
  system=$1
  mount -t proc proc "$system/proc"
  mount --rbind /sys "$system/sys"
  mount --rbind /dev "$system/dev"
  mount -t tmpfs tmpfs "$system/dev/shm"
  exec chroot "$system" env -C /srv/stepladder HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    bash -euo pipefail -c "$2"
' bash "$system" '
  rm -rf build/run
  make bench SUITE=quick OUT=build/run
  make test
' </dev/null
say "Debian $release: passed"
