#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sbom.py TREE: print the software bill of materials of this release as SPDX 2.3 JSON: its files with
checksums and licences, and the libraries that configure.ac looks for. The same tree gives the same text."""
import datetime
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

SKIPPED = re.compile(r"(^|/)(\.git|_?build[^/]*|_inst|autom4te\.cache|html|__pycache__)(/|$)|\.(xz|partial|o|a)$|\.spdx\.json$")


def git(tree, *arguments):
    """What git says of the tree; nothing of an unpacked tarball, or without git."""
    if not shutil.which("git"):
        return ""
    return subprocess.run(["git", "-C", tree, *arguments], capture_output=True, check=False).stdout.decode()


def files_of(tree):
    """The files that git tracks; else all that are there."""
    names = git(tree, "ls-files", "-z").split("\0")[:-1]
    if not names:
        names = [os.path.relpath(os.path.join(folder, name), tree)
                 for folder, _, found in os.walk(tree) for name in found]
    return sorted(name for name in names
                  if not SKIPPED.search(name) and os.path.isfile(os.path.join(tree, name)))


def described(tree, number, name):
    with open(os.path.join(tree, name), "rb") as file:
        data = file.read()
    said = re.search(rb"SPDX-License-Identifier: ([A-Za-z0-9.-]+)", data[:300])
    return {
        "SPDXID": f"SPDXRef-File-{number}",
        "fileName": "./" + name,
        "checksums": [{"algorithm": kind, "checksumValue": hashlib.new(kind.lower(), data).hexdigest()}
                      for kind in ("SHA1", "SHA256")],
        "licenseConcluded": "Apache-2.0",
        "licenseInfoInFiles": [said.group(1).decode() if said else "NONE"],
        "copyrightText": "NOASSERTION",
    }


def libraries(configure):
    """(name, what it is for; "" if required) of each library."""
    for found in re.finditer(r"^PKG_CHECK_MODULES\(\[\w+\], \[([\w-]+)", configure, re.M):
        yield found.group(1), ""
    if "[isal]" in configure:
        yield "isal", ""
    for found in re.finditer(r"^IOBENCH_OPTIONAL(?:_LIBRARY)?\(\[([\w-]+)\].*?\[([^\[\]]+)\]\)$", configure, re.M | re.S):
        if found.group(1) != "cmocka":  # of the tests alone
            yield found.group(1), found.group(2)


def created(tree):
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    if not seconds:
        seconds = git(tree, "log", "-1", "--format=%ct") or os.stat(os.path.join(tree, "NEWS")).st_mtime
    return datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def package(identifier, name, version, **more):
    return {"SPDXID": identifier, "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION",
            "copyrightText": "NOASSERTION", "licenseDeclared": "NOASSERTION",
            "licenseConcluded": "NOASSERTION", "filesAnalyzed": False, **more}


def main():
    tree = sys.argv[1]
    with open(os.path.join(tree, "configure.ac"), encoding="utf-8") as file:
        configure = file.read()
    version = re.search(r"AC_INIT\(\[iobench\], \[([^\]]+)\]", configure).group(1)
    files = [described(tree, number, name) for number, name in enumerate(files_of(tree), 1)]
    # As SPDX 2.3, 7.9: the SHA1 of the sorted SHA1s.
    code = hashlib.sha1("".join(sorted(file["checksums"][0]["checksumValue"] for file in files)).encode())
    own = package("SPDXRef-iobench", "iobench", version, licenseDeclared="Apache-2.0",
                  licenseConcluded="Apache-2.0", filesAnalyzed=True,
                  packageVerificationCode={"packageVerificationCodeValue": code.hexdigest()},
                  licenseInfoFromFiles=["Apache-2.0"])
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", own["SPDXID"])]
    relations += [(own["SPDXID"], "CONTAINS", file["SPDXID"]) for file in files]
    needed = []
    for name, purpose in libraries(configure):
        identifier = f"SPDXRef-Library-{name}"
        needed.append(package(identifier, name, "any that configure accepts",
                              comment=f"optional: {purpose}" if purpose else "required"))
        relations.append((identifier, "OPTIONAL_DEPENDENCY_OF" if purpose else "RUNTIME_DEPENDENCY_OF", own["SPDXID"]))
    json.dump({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"iobench-{version}",
        "documentNamespace": f"https://iobench.example/spdx/iobench-{version}-{code.hexdigest()}",
        "creationInfo": {"created": created(tree), "creators": ["Tool: packaging/sbom.py"]},
        "packages": [own] + needed,
        "files": files,
        "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b}
                          for a, kind, b in relations],
    }, sys.stdout, indent=1)
    print()


main()
