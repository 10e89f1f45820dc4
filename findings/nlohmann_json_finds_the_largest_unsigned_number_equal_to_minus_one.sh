#!/bin/sh
# Packages: nlohmann-json3-dev 3.11.2-2, with g++ 12 (Debian 12, x86-64 Linux).
#
# One would expect that two documents with different integers are different.
# A parsed number below 0 is kept as a signed integer and any other as an unsigned one.  To compare the two, the unsigned one is cast, so
# 18446744073709551615, whose text is kept in full, equals -1, and a difference of the documents as a JSON Patch is empty.
#
# A user meets it who marks "no limit" with the largest unsigned number and "not set" with -1, or compares configurations with seeds of
# 64 bits.
#
# Output on 2026-11-29:
#   18446744073709551615 == -1: true
#   18446744073709551614 == -1: false
#   patch from {"seed":18446744073709551615} to {"seed":-1}: []
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && apt-get -o APT::Sandbox::User=root download -q nlohmann-json3-dev=3.11.2-2 >/dev/null && dpkg-deb -x nlohmann-json3-dev_*.deb .)
cat >"$work/equal.cpp" <<'CPP'
#include <iostream>
#include <nlohmann/json.hpp>

int main() {
  using nlohmann::json;
  const json minus = json::parse("-1");
  bool equal[2] = {};
  for (int i = 0; i < 2; ++i) {
    const json number = json::parse(i == 0 ? "18446744073709551615" : "18446744073709551614");
    equal[i] = number == minus;
    std::cout << number << " == " << minus << ": " << (equal[i] ? "true" : "false") << '\n';
  }
  const json large = json::parse(R"({"seed": 18446744073709551615})"), small = json::parse(R"({"seed": -1})");
  const json patch = json::diff(large, small);
  std::cout << "patch from " << large << " to " << small << ": " << patch << '\n';
  return equal[0] && !equal[1] && patch.empty() ? 0 : 1;
}
CPP
g++ -std=c++17 -I "$work/usr/include" "$work/equal.cpp" -o "$work/equal"
"$work/equal"
