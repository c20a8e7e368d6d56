#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: tests/golden/peers.sh BUILD-FOLDER [VENV]
# Check that the reference tools of each format (TensorFlow, MXNet, webdataset, py-lmdb with
# protobuf) read the files that iobench writes.
# They are installed from PyPI into a private environment (about 2 GB), so `make check` does not
# run this. Exit 77: they cannot be installed here.
set -e
build=$1 venv=$2 here=$(cd "$(dirname "$0")" && pwd)
[ -f "$build/Makefile" ] || { echo "usage: $0 BUILD-FOLDER [VENV]" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
make -s -C "$build" tests/golden/peers
if [ -z "$venv" ]; then
	venv=$work/venv
	if ! python3 -m venv "$venv" || ! "$venv/bin/pip" install -q 'numpy<2' \
		tensorflow-cpu mxnet lmdb webdataset; then
		echo "skipped: the reference tools cannot be installed here" >&2
		exit 77
	fi
fi
"$build/tests/golden/peers" "$work/set" >"$work/lines"
"$venv/bin/python" "$here/peers.py" "$work/set" <"$work/lines"
