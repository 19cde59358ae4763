#!/bin/sh
# Makes the playground, build/playground/index.html; `make playground` calls it. What cannot be had
# (npm, a compiler for WebAssembly) is said in one line, and the exit status is 0 all the same.
#
# The compiler is rustup's target where that can be fetched. Elsewhere it is Debian's rustc-web,
# unpacked into build/cache/wasm-rust and not installed, because it conflicts with Debian's rustc;
# the standard library is then built from rust-web-src. cargo is the one that there is: cargo-web
# needs libraries that may not be installed.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
python=.venv/bin/python
out=build/playground
unpacked=build/cache/wasm-rust
log=build/logs/playground.log
target=wasm32-unknown-unknown
debian="rustc-web libstd-rust-web-dev rust-web-src lld-22 libllvm22"

leave_out() {
    echo "make: $1 ($log): the playground is left out" >&2
    exit 0
}

has_rustup_target() {
    command -v rustup >/dev/null || return 1
    rustup target list --installed 2>/dev/null | grep -qx "$target" ||
        rustup target add "$target" >>"$log" 2>&1
}

unpack_debian() {
    [ -f "$unpacked/.whole" ] && return 0
    command -v apt-get >/dev/null && command -v dpkg >/dev/null || return 1
    rm -rf "$unpacked"
    mkdir -p "$unpacked"
    # rustc's own library, librustc_driver, is in a package with rustc's version in its name.
    library=$(apt-cache depends libstd-rust-web-dev 2>>"$log" |
        sed -n 's/.*Depends: \(libstd-rust-web-[0-9.]*\)$/\1/p')
    for package in $debian ${library:-libstd-rust-web}; do
        (cd "$unpacked" && apt-get download -q "$package") >>"$log" 2>&1 || return 1
    done
    for file in "$unpacked"/*.deb; do
        dpkg -x "$file" "$unpacked" >>"$log" 2>&1 || return 1
    done
    rm -f "$unpacked"/*.deb
    touch "$unpacked/.whole"
}

# 2: there is no compiler. 1: it failed.
compile() {
    if has_rustup_target; then
        cargo build --quiet --profile wasm --target "$target" -p flashbed-page >>"$log" 2>&1
    elif unpack_debian; then
        PATH="$root/$unpacked/usr/bin:$root/$unpacked/usr/lib/llvm-22/bin:$PATH" \
        LD_LIBRARY_PATH="$root/$unpacked/usr/lib/$(uname -m)-linux-gnu:$root/$unpacked/usr/lib/llvm-22/lib" \
        RUSTC="$root/$unpacked/usr/bin/rustc" RUSTC_BOOTSTRAP=1 RUSTFLAGS="-C linker=wasm-ld-22" \
            cargo build --quiet --profile wasm --target "$target" -p flashbed-page \
            -Zbuild-std=std,panic_abort >>"$log" 2>&1
    else
        return 2
    fi || return 1
}

mkdir -p "$out/npm" build/logs
: >"$log"
command -v npm >/dev/null || leave_out "npm is missing"
command -v cargo >/dev/null || leave_out "Rust is missing"
echo "compiling the simulator to WebAssembly (two minutes the first time)"
compile || case $? in
2) leave_out "no compiler for WebAssembly could be fetched" ;;
*) leave_out "the simulator could not be compiled to WebAssembly" ;;
esac
page/npm.sh || leave_out "esbuild could not be installed with npm"
PYTHONPATH=python "$python" page/data.py "$out/data.json" experiments/programs
cd "$out/npm"
node "$root/page/web/build.mjs" "$root/target/$target/wasm/page.wasm" ../data.json ../index.html
