#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A pack killed midway is completed by the same command: finished shards are kept.
. "$(dirname "$0")/cli.sh"

SOURCE=synthetic:count=240,classes=5,mean=100k,seed=3
SHARDS=12

finished() { # complete lines of the manifest
    grep -c '^done [0-9]*$' cut/.iobench-unfinished 2>/dev/null || :
}

# Start a pack, and stop it with a signal once two shards exist. With a larger set if it got to the
# last one before.
interrupt() { # sets $status
    for count in 240 960 3840; do
        rm -rf cut
        SOURCE=synthetic:count=$count,classes=5,mean=100k,seed=3
        "$IOBENCH" pack $SOURCE cut --shards $SHARDS -t 2 >log 2>&1 &
        pid=$!
        while [ "0$(finished)" -lt 2 ] && kill -0 $pid 2>/dev/null; do
            sleep 0.01
        done
        kill -"$1" $pid 2>/dev/null
        wait $pid
        status=$?
        [ -e cut/.iobench-unfinished ] && [ "$(finished)" -lt $SHARDS ] && return
    done
    skip "this machine packs faster than it can be interrupted"
}

for signal in KILL INT; do
    interrupt $signal
    if [ $signal = INT ]; then
        # shellcheck disable=SC2034 # says() looks there
        out=$(cat log)
        [ "$status" = 1 ] || die "exit status $status after an interrupt"
        says "interrupted; repeat the same command"
        [ -z "$(find cut -name '*.partial')" ] || die "temporary files are left: $(ls -a cut)"
    fi
    kept=$(finished)
    [ -z "$(ls cut)" ] || die "a part of the set can be seen: $(ls cut)"
    find cut -name 'train-*' -exec stat -c '%n %i' {} + | sed 's,.*/,,' | sort >before

    # A different command does not resume it; half a line in the manifest is harmless.
    expect 1 "$IOBENCH" pack $SOURCE cut --shards $SHARDS --shuffle=9
    says "unfinished data set of another source or other options"
    printf 'shard 1' >>cut/.iobench-unfinished

    expect 0 "$IOBENCH" pack $SOURCE cut --shards $SHARDS
    says "$kept were finished before"
    stat -c '%n %i' cut/train-* | sed 's,.*/,,' | sort >after
    [ "$(comm -12 before after | wc -l)" -ge "$kept" ] || die "finished shards were written again"
    [ "$(find cut -name '.*')" = cut/.iobench-set ] || die "leftovers: $(ls -a cut)"
    rm -rf whole
    expect 0 "$IOBENCH" pack $SOURCE whole --shards $SHARDS
    for shard in whole/train-*; do
        cmp "$shard" "cut/${shard#whole/}" || die "not the same as without the interruption"
    done
done

# A finished shard that has changed is rewritten.
interrupt KILL
kept=$(finished)
shard=$(sed -n 's/^done \([0-9]*\)$/\1/p' cut/.iobench-unfinished | head -n 1)
echo more >>"$(echo cut/.iobench-draft-*/"$shard"/train-*)"
expect 0 "$IOBENCH" pack $SOURCE cut --shards $SHARDS
says "$((kept - 1)) were finished before"
expect 0 "$IOBENCH" verify cut
exit 0
