#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Puts small bugs one by one into a copy of the tree and runs the tests that should notice. Run in
# the build folder, by `make mutants`. MUTANTS="NAME..." selects some; MUTANTS_LIMIT is the time
# limit of a test in seconds, MUTANTS_WORKERS the number of parallel copies.
#
# tests/mutants/*.list: two lines a mutant, "NAME FILE TEST..." and a sed command that changes
# exactly one line of FILE. A mutant is killed when one of its tests fails or does not end in time.
# A test must pass here without the mutant; a skipped test kills nothing.
set -u

srcdir=$(cd "${srcdir:-.}" && pwd)
build=$PWD
work=$build/mutants.work
limit=${MUTANTS_LIMIT:-300}
workers=${MUTANTS_WORKERS:-2}

# "NAME|FILE|TESTS|SED"
mutants() {
    sed -e '/^#/d' -e '/^$/d' "$srcdir"/tests/mutants/*.list |
        sed -e 'N' -e 's/^\([^ ]*\) \([^ ]*\) \(.*\)\n\(.*\)$/\1|\2|\3|\4/'
}

wanted() { # NAME
    [ -n "${MUTANTS-}" ] || return 0
    case " $MUTANTS " in *" $1 "*) return 0 ;; esac
    return 1
}

# ---- a worker's copy ----

# Copy only differences, so that the next build is short.
refresh() { # TREE
    (cd "$work/fresh" && find . -type d) | while read -r folder; do mkdir -p "$1/$folder"; done
    (cd "$work/fresh" && find . -type f) | while read -r path; do
        cmp -s "$work/fresh/$path" "$1/$path" && continue
        cp -p "$work/fresh/$path" "$1/$path"
        # It may be older than what was made of another one; what makes makefiles keeps its time.
        case $path in *.[ch] | *.cu | *.cuh) touch "$1/$path" ;; esac
    done
    # Files changed by a stopped run are older than their build products.
    [ ! -f "$1.changed" ] || (cd "$1" && touch "$(cat "$1.changed")")
    rm -f "$1.changed"
}

prepare() { # COPY
    mkdir -p "$1/build"
    refresh "$1/tree"
    cd "$1/build" || exit 1
    if [ ! -f config.status ]; then
        eval "../tree/configure -q $("$build/config.status" --config)" >configure.log 2>&1 || {
            echo "configure failed: $1/build/configure.log"
            exit 1
        }
    fi
    make -j2 >make.log 2>&1 || {
        echo "the tree does not build: $1/build/make.log"
        exit 1
    }
}

programs_of() { # TEST...
    for test; do
        case $test in
        tests/liars/*.sh) echo all tests/liars/liar.so tests/liars/liar ;;
        tests/cli/uring.sh) echo all tests/cli/refuse ;;
        tests/fault/descriptors.sh) echo all tests/fault/faults.so ;;
        tests/cuda/device.sh)
            echo all tests/cuda/emulated.so tests/cuda/emulated_nvjpeg.so tests/cuda/libnvjpeg.so.13 bench/device_steps \
                bench/device_decode
            ;;
        tests/cuda/emulated.sh)
            echo all tests/cuda/emulated.so tests/cuda/test_cuda tests/cuda/test_input tests/unit/test_backend \
                tests/unit/test_quantise
            ;;
        tests/cuda/ranks.sh)
            echo all tests/cluster/ranks tests/cuda/emulated.so tests/cuda/emulated_nccl.so tests/cuda/emulated_nccl_old.so
            ;;
        tests/cuda/nvjpeg.sh)
            echo all tests/cuda/emulated.so tests/cuda/emulated_nvjpeg.so tests/cuda/libnvjpeg.so.13 tests/cuda/test_nvjpeg
            ;;
        tests/cuda/feed.sh) echo all tests/cuda/emulated.so bench/device_steps ;;
        tests/cuda/net.sh) echo all tests/cuda/emulated_net_p2p.so tests/cuda/emulated_net_nccl.so ;;
        tests/cluster/net_verbs.sh) echo all tests/cluster/ranks tests/cluster/emulated_verbs.so ;;
        tests/cluster/*.sh) echo all tests/cli/refuse tests/cluster/alive tests/cluster/ranks tests/cluster/steps ;;
        *.sh) echo all ;;
        tests/unit/test_probes) echo "$test" tests/unit/mock_nvml.so ;;
        *) echo "$test" ;;
        esac
    done | sort -u
}

run_test() { # TEST: its status; 124: it did not end
    case $1 in
    *.sh) set -- sh "../tree/$1" ;;
    *) set -- "./$1" ;;
    esac
    srcdir=../tree timeout -k 5 "$limit" "$@" >test.log 2>&1
}

# Without a mutant; only once.
check_sound() { # TEST
    record=$work/sound/$(echo "$1" | tr / _)
    [ ! -f "$record" ] || return "$(cat "$record")"
    # shellcheck disable=SC2046
    make $(programs_of "$1") >make.log 2>&1 && run_test "$1"
    sound=$?
    echo $sound >"$record"
    return $sound
}

# ---- a mutant ----

tell() { # VERDICT TEXT
    printf '%-9s %-28s %s\n' "$1" "$name" "$2"
    echo "$1" >"$work/verdicts/$name"
}

try_tests() { # TEST...
    # shellcheck disable=SC2046
    if ! make $(programs_of "$@") >make.log 2>&1; then
        tell broken "$file does not compile: $(grep -m 1 error make.log)"
        return
    fi
    for test; do
        run_test "$test"
        case $? in
        0 | 77) ;;
        124 | 137)
            tell killed "$test: no end within $limit s"
            return
            ;;
        *)
            tell killed "$test"
            return
            ;;
        esac
    done
    tell SURVIVES "$file: $edit"
}

attempt() { # TEST...
    for test; do
        check_sound "$test"
        case $? in
        0) ;;
        77)
            tell skipped "$test cannot run here"
            return
            ;;
        *)
            tell broken "$test fails without a mutant"
            return
            ;;
        esac
    done
    sed -e "$edit" "../tree/$file" >mutant 2>/dev/null
    if [ "$(diff "../tree/$file" mutant | grep -c '^[<>]')" != 2 ]; then
        tell broken "does not change one line of $file"
        return
    fi
    echo "$file" >../tree.changed
    cp mutant "../tree/$file"
    try_tests "$@"
    cp "$work/fresh/$file" "../tree/$file"
    rm ../tree.changed
}

work_on() { # COPY
    prepare "$1"
    TMPDIR=$1/tmp
    export TMPDIR
    mkdir -p "$TMPDIR"
    mutants | while IFS='|' read -r name file tests edit; do
        wanted "$name" || continue
        mkdir "$work/taken/$name" 2>/dev/null || continue
        # shellcheck disable=SC2086
        attempt $tests </dev/null
    done
}

# ---- all ----

names=$(mutants | cut -d '|' -f 1)
twice=$(echo "$names" | sort | uniq -d)
[ -z "$twice" ] || {
    echo "two mutants have one name: $twice"
    exit 1
}
for name in ${MUTANTS-}; do
    echo "$names" | grep -qx "$name" || {
        echo "there is no mutant $name"
        exit 1
    }
done
rm -rf "$work/fresh" "$work/taken" "$work/sound" "$work/verdicts"
mkdir -p "$work/taken" "$work/sound" "$work/verdicts"
make -s distdir distdir=mutants.work/fresh >"$work/distdir.log" 2>&1 || {
    echo "make distdir failed: $work/distdir.log"
    exit 1
}
CCACHE_BASEDIR=$work CCACHE_NOHASHDIR=1
export CCACHE_BASEDIR CCACHE_NOHASHDIR
for i in $(seq "$workers"); do
    (work_on "$work/$i") &
done
wait
all=$(for name in $names; do wanted "$name" && echo; done | wc -l)
killed=$(cat "$work"/verdicts/* 2>/dev/null | grep -c killed)
echo "$killed of $all killed"
[ "$killed" = "$all" ]
