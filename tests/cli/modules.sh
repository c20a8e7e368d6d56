#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The program starts without the libraries of its modules, and names the module that is missing.
. "$(dirname "$0")/cli.sh"

# ---- the program itself needs none of them ----
if command -v ldd >/dev/null && ldd "$IOBENCH" >libraries 2>/dev/null; then
    ! grep -E 'libdnnl|libmpi|libarchive|libxml2|libibverbs|libcuda' libraries || die "it links them"
fi

# ---- every program that loads modules has all that they take from the program ----
BUILD=${IOBENCH%/*}
if command -v nm >/dev/null; then
    nm --defined-only "$BUILD/libiobench.a" 2>/dev/null | sed -n 's/^[0-9a-f]* [A-Z] //p' | sort -u >ours
    for program in iobench bench/device_steps bench/device_decode tests/cuda/test_cuda tests/cluster/ranks \
        tests/unit/test_backend tests/unit/test_quantise tests/unit/test_overfit tests/unit/test_trainer_golden; do
        [ -f "$BUILD/$program" ] || continue
        nm -D --defined-only "$BUILD/$program" | sed 's/.* //' | sort -u >has
        for module in "$BUILD"/iobench-*.so; do
            nm -D --undefined-only "$module" | sed 's/.* //' | sort -u | comm -12 - ours | comm -23 - has >lacking
            [ ! -s lacking ] || die "$program lacks what $module takes from it: $(cat lacking)"
        done
    done
fi

# ---- alone in a folder: all that needs no module works, the rest says what is not there ----
mkdir alone
cp "$IOBENCH" alone/
"$IOBENCH" pack synthetic:count=8,classes=2,mean=4k set -f recordio >/dev/null
tar -cf images.tar set
expect 0 alone/iobench run --data set --runs 1 --batch-size 4 --no-calibrate
lacks() { # MODULE STATUS COMMAND...
    module=$1
    shift
    expect "$@"
    says "iobench-$module.so: not found next to the program"
}
built_with MPI && lacks mpi 1 env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 alone/iobench run --data set
built_with DNNL && lacks cpu 1 alone/iobench train --data set --network lenet --size 32 --backend cpu
built_with ARCHIVE && lacks archive 1 alone/iobench pack --from archive images.tar other
# The slow backend is not taken in its place without a word, but on request.
built_with DNNL && lacks cpu 1 alone/iobench train --data set --network lenet --size 32
expect 0 alone/iobench train --data set --network lenet --size 32 --classes 2 --batch-size 4 --limit-samples 4 \
    --epochs 1 --memory 16m --backend reference

# ---- results name what was loaded: each file and its version ----
loaded() { # FILE TEST: is there a library of which the Python expression holds?
    python3 -c 'import json, os, sys
document = json.load(open(sys.argv[1]))
modules = document["jobs"][0]["place"]["modules"] if "jobs" in document else document["place"]["modules"]
for module in modules:
    assert os.path.realpath(module["path"]) == module["path"], module
sys.exit(not any(eval(sys.argv[2], module) for module in modules))' "$@" || die "not loaded: $2: $(grep -A9 modules "$1")"
}
built_with DNNL && {
    expect 0 "$IOBENCH" train --data set --network lenet --size 32 --classes 2 --batch-size 4 --limit-samples 4 --backend cpu \
        --memory 16m --json train.json
    loaded train.json 'path.endswith("/iobench-cpu.so") and version is None'
    loaded train.json '"/libdnnl.so." in path and path.endswith(".so." + version) and "." in version'
    expect 0 "$IOBENCH" infer --data set --network lenet --size 32 --classes 2 --batch-size 4 --backend cpu --json infer.json
    loaded infer.json '"/libdnnl.so." in path'
    cp "$BUILD/iobench-cpu.so" copy.so
    expect 0 env IOBENCH_CPU_MODULE="$PWD/copy.so" "$IOBENCH" infer --data set --network lenet --size 32 --classes 2 \
        --batch-size 4 --backend cpu --json infer.json
    loaded infer.json 'path.endswith("/copy.so")'
}

# ---- a module of another version, or that says none, is not used ----
refused() { # VERSION TEXT
    echo "$2" >other.c
    ${CC:-cc} -shared -fPIC -o other.so other.c 2>log || { echo "no compiler: $(cat log)" && return; }
    expect 1 env IOBENCH_CPU_MODULE="$PWD/other.so" alone/iobench train --data set --network lenet --size 32 --backend cpu
    says "other.so: version $1, but the program is" "install both together"
}
built_with DNNL && {
    refused 0.0.1 'const char *iobench_module_release(void); const char *iobench_module_release(void) { return "0.0.1"; }'
    refused none 'extern const char iobench_module_version[]; const char iobench_module_version[] = "0.1.0";'
}
exit 0
