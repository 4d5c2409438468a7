#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# For bare_root_test.sh, inside of the root: consumers in C, Python and Rust by the packages alone,
# beside kmesctl print and record, while everything is killed. Prints what is not as it should be.
set -uo pipefail

WORK=$(mktemp -d)
cd -- "$WORK" || exit 1
export KMES_SOCKET=@kmes-bare-root-consumers
failures=0

fail() {
    printf 'FAIL: %s\n' "$*"
    failures=$((failures + 1))
}

until_true() {
    local left=600
    until "$@"; do
        left=$((left - 1))
        [ "$left" -gt 0 ] || { fail "timed out: $*"; return 1; }
        sleep 0.1
    done
}

# Each prints the type of each event.
build() {
    zcat /usr/share/man/man3/kmes_reader_set_fd.3.gz | sed 's/\\-/-/g; s/\\e/\\/g' |
        awk '/^.EE/ { on = 0 } on; /^.EX/ { on = 1 }' >loop.c
    # shellcheck disable=SC2046  # several flags
    gcc -o loop loop.c $(pkg-config --cflags --libs kmes) || fail "the loop in C"
    cat >loop.py <<'PYTHON'
import select

import kmes

with kmes.ReaderSet() as events:
    loop = select.epoll()
    loop.register(events.fileno(), select.EPOLLIN)
    while loop.poll() is not None:
        for event in events.available():
            print(event.type, flush=True)
PYTHON
    mkdir -p rust/src
    cat >rust/Cargo.toml <<'TOML'
[package]
name = "set"
version = "1.0.0"
edition = "2021"
[dependencies.kmes]
path = "CRATE"
features = ["libkmes"]
TOML
    sed -i "s|CRATE|$(echo /usr/share/cargo/registry/kmes-*)|" rust/Cargo.toml
    cat >rust/src/main.rs <<'RUST'
fn main() -> Result<(), kmes::Error> {
    let mut set = kmes::ReaderSet::by_libkmes(kmes::Options::default())?;
    for event in set.events() {
        println!("{}", String::from_utf8_lossy(&event?.1.kind));
    }
    Ok(())
}
RUST
    (cd rust && cargo build --offline --quiet) || fail "the set in Rust"
}

serve() {
    kmesctl serve --cpus 2 --capacity 64M 2>serve.log &
    server=$!
    until_true grep -q serves serve.log
}

has() { grep -q "$2" "$1"; }
all_have() {
    local file
    for file in c py rs print; do has "$file" "$1" || return; done
}
recorded() {
    kmesctl convert --to json events >recorded
    has recorded "$1"
}

build
serve
./loop >c & consumers=($!)
python3 loop.py >py & consumers+=($!)
rust/target/debug/set >rs & consumers+=($!)
kmesctl print >print 2>news & consumers+=($!)
kmesctl record -o events --sync 1 2>record.log &
recorder=$!
kmesctl emit first || fail "emit"
until_true all_have first
kmesctl emit flood --count 1000000000 --rate 20000 &
emitter=$!
until_true all_have flood
kill -KILL "$emitter"
kill -STOP "${consumers[@]}"
kmesctl emit while.stopped --count 1000 || fail "emit to stopped consumers"
kill -CONT "${consumers[@]}"
until_true all_have while.stopped
kmesctl emit last.of.one || fail "emit"
until_true all_have last.of.one
until_true recorded last.of.one
kill -KILL "$recorder" "$server"
wait "$recorder" "$server" 2>/dev/null
until_true has news 'the producer has ended'
kmesctl emit lost 2>/dev/null && fail "an event without a producer"
serve
kmesctl emit first.of.two || fail "emit"
until_true all_have first.of.two

count=$(wc -l <c)
for file in py rs print; do
    [ "$(wc -l <"$file")" -eq "$count" ] || fail "$file has other events than c: $(wc -l c "$file")"
done
recorded last.of.one
[ "$(wc -l <recorded)" -eq $((count - 1)) ] || fail "the record: $(wc -l c recorded)"
grep -q 'events lost' print && fail "lost: $(grep 'events lost' print)"
kmesctl convert --to ctf -o trace events || fail "convert"
babeltrace2 trace >trace.txt || fail "babeltrace2"
[ "$(wc -l <trace.txt)" -eq $((count - 1)) ] || fail "the trace: $(wc -l trace.txt)"
kill -TERM "$server" "${consumers[@]}"
wait "$server" || fail "serve: status $?"
[ "$failures" -eq 0 ]
