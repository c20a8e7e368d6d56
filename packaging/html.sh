#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# html.sh TREE FOLDER: the pages of TREE as HTML below FOLDER, by cmark-gfm. Each link to a page
# becomes one to its HTML; headings get the anchors that GitHub gives them.
set -eu
command -v cmark-gfm >/dev/null || { echo "html.sh: cmark-gfm is missing: install the package cmark-gfm" >&2; exit 1; }
to=$(mkdir -p "$2" && cd "$2" && pwd)
cd "$1"
cp docs/html.css "$to/"

anchors() { # id="the-text-of-the-heading"
    awk '/^<h[1-6]>/ {
        id = tolower($0)
        gsub(/<[^>]*>|&[a-z]*;/, "", id)
        gsub(/[^a-z0-9 _-]/, "", id)
        gsub(/ /, "-", id)
        sub(/^<h[1-6]/, "& id=\"" id "\"")
    }
    { print }'
}

page() { # FILE
    up=$(dirname "$1" | sed 's|[^/.][^/]*|..|g')
    title=$(sed -n 's/^# *//p' "$1" | head -n 1)
    printf '<!DOCTYPE html>\n<html lang="en">\n<meta charset="utf-8">\n<meta name="viewport" content="width=device-width">\n'
    printf '<title>%s</title>\n<link rel="stylesheet" href="%s/html.css">\n' "${title:-iobench}" "$up"
    printf '<nav><a href="%s/README.html">iobench</a> <a href="%s/docs/README.html">all pages</a></nav>\n' "$up" "$up"
    cmark-gfm -e table -e autolink "$1" | anchors |
        sed -E 's/(href="[^":]*)\.md([#"])/\1.html\2/g'
}

find . -name '*.md' ! -path './*build/*' ! -path './build*' ! -path './debian/*' | sed 's|^./||' | while read -r path; do
    mkdir -p "$to/$(dirname "$path")"
    page "$path" >"$to/${path%.md}.html"
done
find docs -name '*.svg' -o -name '*.png' -o -name '*.csv' -o -name '*.json' | while read -r path; do
    mkdir -p "$to/$(dirname "$path")"
    cp "$path" "$to/$path"
done
