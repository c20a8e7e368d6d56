#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# packaging/: the manifests and job scripts are well-formed, name options that exist, and the
# container gets each library that the program needs.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"

P=$SRCDIR/packaging

# Every "iobench COMMAND OPTIONS" of the files: an unknown option or command exits with 2, and so
# does a known one here, but with another message.
names_options() { # FILE
    tr '\n' ' ' <"$1" | tr -s ' "' '  ' | sed 's/ - / /g; s/\\ / /g' |
        grep -o 'iobench \(run\|doctor\|gather\)' | cut -d' ' -f2 | sort -u >commands
    [ -s commands ] || die "$1 runs nothing"
    options=$(grep -v '^ *#' "$1" | grep -o -- ' --[a-z][a-z-]*' | sort -u)
    for option in $options; do
        case $option in --mpi | --bind-to | --ntasks-per-node) continue ;; esac
        known=no
        while read -r command; do
            "$IOBENCH" help "$command" | grep -q -- "$option\b" && known=yes
        done <commands
        [ $known = yes ] || die "$1: no command has $option"
    done
}

for file in "$P"/slurm/*.sbatch "$P"/kubernetes/*.yaml; do
    names_options "$file"
done

if command -v shellcheck >/dev/null; then
    expect 0 shellcheck "$P"/slurm/*.sbatch
fi
for script in "$P"/slurm/*.sbatch; do
    expect 0 sh -n "$script"
    grep -q '^#SBATCH --time=' "$script" || die "$script has no time limit"
done

# Manifests: the kind, the same image, each mount has its volume.
if python3 -c 'import yaml' 2>/dev/null; then
    expect 0 python3 - "$P"/kubernetes/*.yaml <<'END'
import sys, yaml

def pods(node):
    if isinstance(node, dict):
        if "containers" in node:
            yield node
        for value in node.values():
            yield from pods(value)

for path in sys.argv[1:]:
    with open(path) as file:
        for document in yaml.safe_load_all(file):
            assert {"apiVersion", "kind", "metadata", "spec"} <= set(document), path
            found = list(pods(document))
            assert found, path
            for pod in found:
                volumes = {volume["name"] for volume in pod.get("volumes", [])}
                for container in pod["containers"]:
                    assert container["image"].startswith("registry.example/iobench:"), path
                    assert all(isinstance(word, str) for word in container["command"]), path
                    mounts = {mount["name"] for mount in container.get("volumeMounts", [])}
                    assert mounts <= volumes, (path, mounts - volumes)
END
fi

# The recipe installs the package of each library, as Debian 12 names it.
if ! { grep -qx 'ID=debian' /etc/os-release && grep -qx 'VERSION_ID="12"' /etc/os-release; } 2>/dev/null; then
    echo "manifests are well-formed"
    exit 0
fi
case $(readelf -d "$IOBENCH" 2>/dev/null) in *asan*) skip "built with sanitizers" ;; esac
readelf -d "$IOBENCH" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | while read -r library; do
    path=$(ldd "$IOBENCH" | awk -v name="$library" '$1 == name { print $3 }')
    package=$(dpkg-query -S "$(basename "$path")" 2>/dev/null | sed -n "s|^\([^:]*\):[^ ]* .*/$library\$|\1|p" | head -n 1)
    case $package in libc6* | lib32* | '') continue ;; libopenmpi3) package=openmpi-bin ;; esac
    grep -q "[ 	]$package\b" "$P/Containerfile" || echo "$library needs $package"
done >lacks
[ ! -s lacks ] || die "packaging/Containerfile: $(cat lacks)"
echo "manifests are well-formed, and the container has each library"
