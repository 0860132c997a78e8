#!/usr/bin/env bash
# Installs the Debian or Ubuntu packages that are missing, and only those.
#
#   test/install-deps.sh [artifacts|build|check|cli|firefox|monitoring|page|tls] ...
#
#   artifacts    what release/make.py and release/docs_site.py call
#   build        what configuring, building and the unit tests need (the default)
#   check        clang, clang-tidy and clang-format for the tidy and fuzz presets, a quick linker
#   cli          the shells and checkers of manual pages that test/cli tries
#   firefox      the other browser that the tests of the web page can drive
#   monitoring   prometheus and promtool, for test/monitoring
#   page         the browser that the tests of the web page drive
#   tls          a scanner of TLS servers and what test/tls calls besides
#
# Debian 12, Debian 13 and Ubuntu 24.04. Needs root or sudo only if something is missing.
set -euo pipefail

build_packages=(
  ccache cmake ninja-build g++ pkg-config ca-certificates python3
  libabsl-dev libcli11-dev libfmt-dev libgmock-dev libgrpc++-dev libgtest-dev libnghttp2-dev
  libprotobuf-dev libsimdjson-dev libspdlog-dev libsqlite3-dev libssl-dev libyaml-cpp-dev
  nlohmann-json3-dev prometheus-cpp-dev protobuf-compiler protobuf-compiler-grpc tzdata
  zlib1g-dev
)
artifacts_packages=(binutils git python3-markdown python3-yaml xz-utils)
page_packages=(chromium)
firefox_packages=(firefox-esr)
check_packages=(clang clang-tidy clang-format libclang-rt-dev faketime mold)
cli_packages=(fish groff-base man-db mandoc zsh)
monitoring_packages=(prometheus)
tls_packages=(testssl.sh curl openssl)
boost_minimum=1.81

installed() {
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# Debian 12's libboost-dev is older than we need, and newer releases have no libboost1.81-dev.
has_boost() {
  installed libboost1.81-dev && return 0
  local version
  version=$(dpkg-query -W -f='${Version}' libboost-dev 2>/dev/null) || return 1
  installed libboost-dev && dpkg --compare-versions "$version" ge "$boost_minimum"
}

# Node often comes from elsewhere, and then conflicts with the distribution's packages.
node_packages() {
  command -v node >/dev/null || command -v nodejs >/dev/null || echo nodejs
  command -v npm >/dev/null || echo npm
}

# Ubuntu's package chromium is a way to another package system; any Chromium in PATH will do.
has_chromium() {
  command -v chromium >/dev/null || command -v chromium-browser >/dev/null
}

# Names the package to install; needs fresh package lists.
boost_package() {
  local candidate
  candidate=$(apt-cache policy libboost-dev | awk '/Candidate:/ {print $2}')
  if [ -n "$candidate" ] && [ "$candidate" != "(none)" ] &&
     dpkg --compare-versions "$candidate" ge "$boost_minimum"; then
    echo libboost-dev
  else
    echo libboost1.81-dev
  fi
}

fail() {
  echo "install-deps: $*" >&2
  exit 2
}

command -v apt-get >/dev/null ||
  fail "expected apt-get (Debian or Ubuntu), found none; install the packages named in $0 by hand"

wanted=()
boost=false
for group in "${@:-build}"; do
  case "$group" in
    build) wanted+=("${build_packages[@]}" $(node_packages)); boost=true ;;
    artifacts) wanted+=("${artifacts_packages[@]}") ;;
    page) has_chromium || wanted+=("${page_packages[@]}") ;;
    firefox) wanted+=("${firefox_packages[@]}") ;;
    check) wanted+=("${check_packages[@]}") ;;
    cli) wanted+=("${cli_packages[@]}") ;;
    monitoring) wanted+=("${monitoring_packages[@]}") ;;
    tls) wanted+=("${tls_packages[@]}") ;;
    *) fail "expected artifacts, build, check, cli, firefox, monitoring, page or tls," \
      "found '$group'" ;;
  esac
done

missing=()
for package in "${wanted[@]}"; do
  installed "$package" || missing+=("$package")
done
needs_boost=false
if $boost && ! has_boost; then needs_boost=true; fi
if [ ${#missing[@]} -eq 0 ] && ! $needs_boost; then
  echo "install-deps: everything needed is installed"
  exit 0
fi

run_as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || fail "expected root or sudo to install: ${missing[*]}"
  run_as_root=(sudo)
fi
apt() {
  "${run_as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q "$@"
}

echo "install-deps: reading package lists"
apt update >/dev/null
if $needs_boost; then missing+=("$(boost_package)"); fi
echo "install-deps: installing ${missing[*]}"
apt install -y --no-install-recommends "${missing[@]}"
