#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds a Containerfile where no container engine is: each stage is a chroot, which debootstrap makes. Understands
# what packaging/Containerfile uses. As root, with the network:
#     packaging/chroot.sh [-n] FOLDER [SOURCE]
# FOLDER/image is the result, FOLDER/base is kept for the next time. -n only prints the steps. Exits with 77 where
# it cannot work.
set -eu

dry=''
[ "${1-}" != -n ] || { dry=yes && shift; }
folder=${1:?usage: packaging/chroot.sh [-n] FOLDER [SOURCE]}
source=$(cd "${2:-$(dirname "$0")/..}" && pwd)
recipe=$source/packaging/Containerfile
image='' stage='' command='' variables=''

say() { printf 'chroot.sh: %s\n' "$*" >&2; }
stop() { say "$*" && exit 77; }

# Print one instruction a line.
instructions() {
    sed '/^ *#/d' "$recipe" | awk '/\\$/ { sub(/\\$/, ""); line = line $0; next } { print line $0; line = "" }' |
        tr -s ' ' | sed '/^$/d'
}

# Run a command line in the stage, with its variables.
inside() { # COMMAND
    chroot "$image" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C \
        DEBIAN_FRONTEND=noninteractive ${variables:+$variables} sh -c "$1"
}

begin_stage() { # IMAGE [as NAME]
    case $1 in */debian:12) ;; *) say "unknown image $1" && exit 1 ;; esac
    stage=${3:-image} image=$folder/${3:-image} variables=
    [ -z "$dry" ] || return 0
    [ -f "$folder/base.done" ] || {
        rm -rf "$folder/base"
        debootstrap --variant=minbase bookworm "$folder/base" "${MIRROR:-http://deb.debian.org/debian}" >"$folder/log" 2>&1 ||
            stop "debootstrap failed: $(tail -n 1 "$folder/log")"
        touch "$folder/base.done"
    }
    rm -rf "$image"
    cp -a "$folder/base" "$image"
    cp /etc/resolv.conf "$image/etc/"
    printf '#!/bin/sh\nexit 101\n' >"$image/usr/sbin/policy-rc.d" # starts no service
    chmod +x "$image/usr/sbin/policy-rc.d"
    mount -t proc proc "$image/proc"
    mount --rbind -o ro /sys "$image/sys"
    for device in null zero random urandom full; do
        [ -e "$image/dev/$device" ] || cp -a "/dev/$device" "$image/dev/"
    done
    mkdir -p "$image/dev/shm"
    mount -t tmpfs tmpfs "$image/dev/shm"
}

copy() { # [--from=STAGE] FROM TO
    from=$source
    case $1 in --from=*) from=$folder/${1#--from=} && shift ;; esac
    [ -z "$dry" ] || return 0
    mkdir -p "$image$2"
    tar -C "$from/$1" --exclude=.git --exclude=build -cf - . |
        tar -C "$image$2" --no-same-owner -xf -
    chmod -R u+w "$image$2" 2>/dev/null || :
}

step() { # INSTRUCTION WORD...
    say "$*"
    instruction=$1
    shift
    case $instruction in
    FROM) begin_stage "$@" ;;
    COPY) copy "$@" ;;
    ENV) variables="$variables $*" ;;
    RUN) [ -n "$dry" ] || inside "$*" </dev/null >>"$folder/log" 2>&1 || { tail -n 20 "$folder/log" >&2 && exit 1; } ;;
    CMD) command=$* ;;
    *) say "unknown instruction $instruction" && exit 1 ;;
    esac
}

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
if [ -z "$dry" ]; then
    [ "$(id -u)" = 0 ] || stop "needs root"
    command -v debootstrap >/dev/null || stop "debootstrap is not installed"
    # All mounts end with this process.
    [ -n "${CHROOT_ALONE-}" ] || CHROOT_ALONE=1 exec unshare -m "$0" "$folder" "$source"
fi
instructions >"$folder/steps"
while read -r line <&3; do
    # shellcheck disable=SC2086 # words
    set -f && set -- $line && set +f
    case $1 in RUN) set -- RUN "${line#RUN }" ;; esac
    step "$@"
done 3<"$folder/steps"
[ "$stage" = image ] || { say "the last stage has a name" && exit 1; }
[ -n "$dry" ] && exit 0
inside "mpirun -n 2 --oversubscribe iobench doctor --launch" || exit 1
inside "$(printf '%s' "$command" | tr -d '[],"')" || exit 1
