#!/usr/bin/env bash
# Runs a command with a root folder of its own: that of the machine, but for the places where
# NVIDIA's programs look. To be called in a mount namespace that ends with it; see run.sh.
#
#   enter.sh PLACE COMMAND...
set -euo pipefail
place=$1
shift
root=$place/root
mount -t tmpfs tmpfs "$root"
for entry in /*; do
  name=${entry#/}
  if [[ -L $entry ]]; then
    cp -P "$entry" "$root/$name"
  elif [[ -d $entry ]]; then
    mkdir "$root/$name"
    mount --rbind "$entry" "$root/$name"
  fi
done
mkdir -p "$root/mps" "$root/driver-root"
mount -t tmpfs tmpfs "$root/run" # for CDI files
mount -t tmpfs tmpfs "$root/var/lib"
mkdir -p "$root/var/lib/kubelet/device-plugins"
mount --bind "$place/pci" "$root/sys/bus/pci/devices"
# Some kernels have no /proc/modules to mount over: /proc is a folder of links to the true one.
mkdir "$root/.proc"
mount --move "$root/proc" "$root/.proc"
mount -t tmpfs tmpfs "$root/proc"
for entry in "$root"/.proc/[a-z]*; do
  ln -s "/.proc/${entry##*/}" "$root/proc/${entry##*/}"
done
rm -f "$root"/proc/{driver,modules}
mkdir "$root/proc/driver"
mount --bind "$place/driver" "$root/proc/driver"
cp "$place/modules" "$root/proc/modules"
exec chroot "$root" "$@"
