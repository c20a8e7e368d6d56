#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# packaging/: the manifests and job scripts are well-formed, name options that exist, and the
# container gets each library that the program needs; all packages have one version and the libraries that
# ./bootstrap installs; the bill of materials is whole; HTML pages link to each other. With IOBENCH_LONG=1
# two tarballs of one tree are identical.
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
    # What a hosted CI does is .ci/run.
    workflow=$SRCDIR/.github/workflows/ci.yml
    [ ! -e "$workflow" ] || expect 0 python3 -c 'import sys, yaml
steps = yaml.safe_load(open(sys.argv[1]))["jobs"]["run"]["steps"]
assert any(step.get("run") == ".ci/run" for step in steps)' "$workflow"
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

# ---- packages ----
version=$(sed -n 's/^AC_INIT(\[iobench\], \[\([^]]*\)\].*/\1/p' "$SRCDIR/configure.ac")
expect 0 "$IOBENCH" --version
says "iobench $version"
head -n 1 "$SRCDIR/NEWS" | grep -qx "iobench $version" || die "NEWS does not begin with $version"
head -n 1 "$SRCDIR/packaging/debian/changelog" | grep -q "^iobench ($version)" || die "packaging/debian/changelog is not of $version"
grep -q "^Version: *$version\$" "$P/rpm/iobench.spec" || die "iobench.spec is not of $version"
grep -q "version(\"$version\")" "$P/spack/package.py" || die "package.py is not of $version"
! grep 'image: ' "$P"/kubernetes/*.yaml | grep -v ":$version\$" || die "an image is not of $version"
sed -n '/^NEEDED="/,/"/p; /^WANTED="/,/"/p' "$SRCDIR/bootstrap" | grep -o '[a-z0-9-]*-dev\|libjs-[a-z]*' | grep -v '^libc6' |
    while read -r package; do
        grep -q "[ ,]$package," "$SRCDIR/packaging/debian/control" || echo "$package"
    done >lacks
[ ! -s lacks ] || die "packaging/debian/control does not build with $(cat lacks)"
sed -n 's/^IOBENCH_OPTIONAL(_LIBRARY)\{0,1\}(\[\([a-z]*\)\].*/\1/p' "$SRCDIR/configure.ac" | grep -v cmocka |
    while read -r library; do
        grep -q "[\"(]\(lib\|one\|rdma-\)\{0,1\}$library" "$P/spack/package.py" || echo "$library"
    done >lacks
[ ! -s lacks ] || die "package.py does not know $(cat lacks)"
expect 0 python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$P/spack/package.py"
for path in "$SRCDIR"/packaging/debian/*.install "$SRCDIR"/packaging/debian/rules "$P/html.sh"; do
    [ -s "$path" ] || die "$path is missing"
done

# ---- bill of materials: what the tree has, the same each time ----
SOURCE_DATE_EPOCH=0 python3 "$P/sbom.py" "$SRCDIR" >one.json || die "no bill of materials"
SOURCE_DATE_EPOCH=0 python3 "$P/sbom.py" "$SRCDIR" | cmp - one.json || die "two bills of materials differ"
expect 0 python3 - one.json "$SRCDIR" "$version" <<'END'
import hashlib, json, sys
bill = json.load(open(sys.argv[1]))
names = {package["name"]: package for package in bill["packages"]}
assert names["iobench"]["versionInfo"] == sys.argv[3] and bill["creationInfo"]["created"] == "1970-01-01T00:00:00Z"
assert {"zlib", "jansson", "isal", "uring", "dnnl", "mpi"} <= set(names) and "cmocka" not in names, names
files = {file["fileName"]: file for file in bill["files"]}
for name in ("./cmd/main.c", "./readers/uring.c", "./LICENSE"):
    sums = {sum["algorithm"]: sum["checksumValue"] for sum in files[name]["checksums"]}
    assert sums["SHA256"] == hashlib.sha256(open(sys.argv[2] + name[1:], "rb").read()).hexdigest(), name
assert files["./cmd/main.c"]["licenseInfoInFiles"] == ["Apache-2.0"]
ids = {entry["SPDXID"] for entry in bill["files"] + bill["packages"]} | {"SPDXRef-DOCUMENT"}
assert all({r["spdxElementId"], r["relatedSpdxElement"]} <= ids for r in bill["relationships"])
END

# ---- pages ----
if command -v cmark-gfm >/dev/null; then
    expect 0 "$P/html.sh" "$SRCDIR" html
    expect 0 python3 - html <<'END'
import glob, os, re, sys
os.chdir(sys.argv[1])
pages = {path: open(path).read() for path in glob.glob("**/*.html", recursive=True)}
ids = {path: set(re.findall(r'id="([^"]*)"', text)) for path, text in pages.items()}
links = 0
for path, text in pages.items():
    for link in re.findall(r'(?:href|src)="([^":]+)"', text):
        file, _, anchor = link.partition("#")
        to = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
        if not to.endswith((".html", ".svg", ".png", ".css")):
            continue  # a source file, which the tree alone has
        assert os.path.exists(to) and (not anchor or anchor in ids[to]), (path, link)
        links += 1
assert links > 300 and "<table>" in pages["docs/questions.html"], links
END
fi

if [ -n "${IOBENCH_LONG-}" ]; then
    for mask in 022 077; do
        (umask $mask && make -C "$PROGRAMS" dist distdir="$T/dist/iobench-$version" >dist.log 2>&1) || die "$(tail dist.log)"
        sha256sum <"$T/dist/iobench-$version.tar.xz"
    done | sort -u >sums
    [ "$(wc -l <sums)" = 1 ] || die "two tarballs of one tree differ"
fi

# ---- the recipe without a container engine: each instruction is understood; with IOBENCH_LONG=1 it is followed ----
expect 0 "$P/chroot.sh" -n steps
says "FROM docker.io/library/debian:12 AS build" "COPY --from=build /iobench/ /" 'CMD ["iobench", "doctor"]'
mkdir -p strange/packaging
printf 'FROM docker.io/library/debian:12\nONBUILD x\n' >strange/packaging/Containerfile
expect 1 "$P/chroot.sh" -n steps strange
says "unknown instruction ONBUILD"
if [ -n "${IOBENCH_LONG-}" ]; then
    status=0
    "$P/chroot.sh" "$T/container" >container.log 2>&1 || status=$?
    case $status in 0 | 77) ;; *) die "no container: $(tail -n 30 container.log)" ;; esac
fi

# The recipe installs the package of each library, as Debian 12 names it.
if ! { grep -qx 'ID=debian' /etc/os-release && grep -qx 'VERSION_ID="12"' /etc/os-release; } 2>/dev/null; then
    echo "manifests are well-formed"
    exit 0
fi
case $(readelf -d "$IOBENCH" 2>/dev/null) in *asan*) skip "built with sanitizers" ;; esac
libraries=$(readelf -d "$IOBENCH" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
# Asked once: it reads all its lists of files. Fails if one of the names is unknown.
# shellcheck disable=SC2086 # names
dpkg-query -S $libraries >owners 2>/dev/null || :
for library in $libraries; do
    package=$(sed -n "s|^\([^:]*\):[^ ]* .*/$library\$|\1|p" owners | head -n 1)
    case $package in libc6* | lib32* | '') continue ;; libopenmpi3) package=openmpi-bin ;; esac
    grep -q "[ 	]$package\b" "$P/Containerfile" || echo "$library needs $package"
done >lacks
[ ! -s lacks ] || die "packaging/Containerfile: $(cat lacks)"
echo "manifests are well-formed, and the container has each library"
