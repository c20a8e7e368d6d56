#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# packaging/portable.sh NAME FILE...: makes NAME.tar.gz, a folder that runs on any Linux of this processor, without
# packages and without network, as GPU machines often are. FILEs are programs, modules (*.so), and
# folders or texts that come along. Of libraries it takes all that they need, the C library and its
# loader too, so that an older one over there does not matter; but for NVIDIA's: they belong to that
# machine's driver, toolkit or PyTorch, where the program looks for them (base/plugin.c).
set -eu

THEIRS='^lib(cuda|cudart|cudnn|cublas|nccl|nvrtc|nvidia|nvToolsExt)[A-Za-z_-]*\.so'

die() {
    echo "portable: $*" >&2
    exit 1
}

# Files that a program needs, one a line.
libraries() {
    ldd "$1" | while read -r name arrow path _; do
        case $name in
        linux-vdso*) continue ;;
        /*) path=$name ;; # the loader itself
        esac
        echo "${name##*/}" | grep -Eq "$THEIRS" && continue
        [ "$arrow $path" != "=> not" ] || die "$1 needs $name, which is not there"
        echo "$path"
    done
}

# Started by any of the folder's names, also through a link, and from lib/.
launcher() {
    cat <<'END'
#!/bin/sh
self=$0
[ ! -L "$self" ] || self=$(readlink -f "$self")
here=$(cd -P "${self%/*}" && pwd)
lib=$here/lib
[ -d "$lib" ] || lib=$here
END
    # The loader takes its option in place of LD_LIBRARY_PATH, by which machines name their driver.
    # What starts the program again (iobench study) starts this file.
    # shellcheck disable=SC2016 # expanded when it starts
    echo 'export IOBENCH_PROGRAM="$here/${self##*/}"'
    printf 'exec "%s" --library-path "%s" "%s" "$@"\n' "\$lib/$1" \
        "\$lib\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}" "\$lib/programs/\${self##*/}"
}

# The packages' copyright notices of the libraries "$@".
licences() {
    command -v dpkg-query >/dev/null || return 0
    for path; do # Debian's lists may say /lib for what is in /usr/lib
        real=$(readlink -f "$path")
        echo "$real"
        echo "${real#/usr}"
    done | xargs dpkg-query -S 2>/dev/null | sed 's/[:,].*//' | sort -u | while read -r package; do
        cp "/usr/share/doc/$package/copyright" "$folder/licences/$package" 2>/dev/null || :
    done
}

[ $# -ge 2 ] || die "usage: packaging/portable.sh NAME FILE..."
name=$1
shift
work=$(mktemp -d "./portable-XXXXXX")
trap 'rm -rf "$work"' EXIT
folder=$work/$name
mkdir -p "$folder/lib/programs" "$folder/licences"
for file; do
    case $file in
    *.so) cp -L "$file" "$folder/lib/" && libraries "$file" >>"$work/libraries" ;;
    *)
        if [ -d "$file" ]; then
            cp -RL "$file" "$folder/"
        elif [ -x "$file" ] && [ "$(head -c 4 "$file" | tr -d '\177')" = ELF ]; then
            cp -L "$file" "$folder/lib/programs/" && libraries "$file" >>"$work/libraries"
            touch "$folder/${file##*/}"
        else
            cp -L "$file" "$folder/"
        fi
        ;;
    esac
done
sort -u "$work/libraries" | while read -r path; do
    cp -L "$path" "$folder/lib/"
done
loader=$(cd "$folder/lib" && echo ld-*.so*)
[ -f "$folder/lib/$loader" ] || die "the loader is not among the libraries"
for program in "$folder"/lib/programs/*; do
    launcher "$loader" >"$folder/${program##*/}"
    chmod +x "$folder/${program##*/}"
done
# The program starts it by sudo, from beside itself.
[ ! -f "$folder/cachectl" ] || cp "$folder/cachectl" "$folder/lib/cachectl"
strip --strip-unneeded "$folder"/lib/programs/* 2>/dev/null || :
# shellcheck disable=SC2046 # paths of libraries have no blanks
licences $(sort -u "$work/libraries")
tar -C "$work" -cf - "$name" | gzip -3 >"$name.tar.gz.partial"
mv "$name.tar.gz.partial" "$name.tar.gz"
echo "$name.tar.gz"
