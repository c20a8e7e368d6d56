#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Put small bugs that nobody chose into a copy of the tree, and run the tests that reach them.

    make mutants SEED=1 COUNT=60 [FOLDER="report base"] [WITHOUT=report/page] [WORKERS=2] [SLOW=30] [BUDGET=60]

A mutant changes one line by one of the rules below. It counts if it compiles and changes the object. Which
tests reach its line is known from a build with gcov, in which each test runs once; those run, the nearest and
shortest first, until one fails or does not end. Tests that fail without a mutant are left out and named, and so are
scripts that take more than SLOW seconds under gcov. A mutant survives, too, if none failed in BUDGET seconds: then some did
not run. Printed: each verdict, and the score by folder. equivalent.list names mutants that no test can kill, with the
reason; they are not drawn.

What is made in mutants.work/generated is kept: a second call compiles what differs, runs with gcov only tests that
changed, and keeps the verdicts of the seed whose source and tests are the same: one that was interrupted, which prints
its score too, goes on. A dropped call that only frees is not tried: leaks are found by builds with sanitizers.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

# (name, pattern, replacement). Applied to one match of a line of code, comments and strings blanked.
RULES = [
    ("boundary", r"(?<=[\w)\]] )<(?= )", "<="), ("boundary", r"(?<=[\w)\]] )<=(?= )", "<"),
    ("boundary", r"(?<=[\w)\]] )>(?= )", ">="), ("boundary", r"(?<=[\w)\]] )>=(?= )", ">"),
    ("equality", r" == ", " != "), ("equality", r" != ", " == "),
    ("logic", r" && ", " || "), ("logic", r" \|\| ", " && "),
    ("negate", r"(?<=\bif \()(?=.*\)( \{)?$)", "!("),
    ("not", r"(?<![\w!])!(?=[\w(])", ""),
    ("arithmetic", r"(?<=[\w)\]] )\+(?= )", "-"), ("arithmetic", r"(?<=[\w)\]] )-(?= )", "+"),
    ("arithmetic", r"(?<=[\w)\]] )\*(?= )", "/"), ("arithmetic", r"(?<=[\w)\]] )/(?= )", "*"),
    ("sum", r" \+= ", " = "), ("sum", r" -= ", " += "), ("count", r"\+\+", "--"),
    ("constant", r"(?<![\w.])0(?![\w.])", "1"), ("constant", r"(?<![\w.-])1(?![\w.])", "2"),
    ("constant", r"(?<![\w.-])2(?![\w.])", "3"), ("constant", r"(?<![\w.])100(?![\w.])", "10"),
    ("unit", r"\b1e9\b", "1e6"), ("unit", r"\b1e6\b", "1e9"), ("unit", r"\b1e3\b", "1e6"), ("unit", r"\b1000\b", "1024"),
    ("unit", r"\b1024\b", "1000"), ("unit", r"\b1048576\b", "1000000"), ("unit", r"\b512\b", "4096"),
    ("truth", r"\btrue\b", "false"), ("truth", r"\bfalse\b", "true"),
    ("extreme", r"\bfmin\b", "fmax"), ("extreme", r"\bfmax\b", "fmin"), ("extreme", r"\bMIN\b", "MAX"),
    ("extreme", r"\bMAX\b", "MIN"), ("extreme", r"\bmin_", "max_"), ("extreme", r"\bmax_", "min_"),
    ("first", r"\[0\]", "[1]"), ("first", r"\[(i|n|rank|row)\]", "[0]"), ("last", r"\[(\w+) - 1\]", r"[0]"),
    ("call", r"^\s+(?!return|goto|break|continue|(?:free|json_decref|\w+_(?:release|destroy))\()[a-z]\w*\([^=]*\);$", ";"),
    ("return", r"(?<=\breturn )(?!0;|NULL;|-1;)[^;]+(?=;)", "0"),
    ("skip", r"^\s+(?:\w+(?:->|\.))*\w+(?:\[\w+\])? [-+|&]?= [^;{]*;$", ";"),
]
FIELD = re.compile(r"(?:(?<=->)|(?<=\w\.))([a-z]\w*)\b(?!\()")
STRUCT = re.compile(r"^struct (\w+) \{\n(.*?)^\}", re.M | re.S)
MEMBER = re.compile(r"^\s+((?:const |unsigned |struct |enum )*\w+) ([\w, ]+);", re.M)
SKIPPED = re.compile(r"^\s*(#|\*|/\*|assert|static_assert|case |default:)")


def blanked(line):
    """The line without the text of comments and strings, of the same length."""
    line = re.sub(r'"(?:\\.|[^"\\])*"', lambda m: '"' + " " * (len(m[0]) - 2) + '"', line)
    line = re.sub(r"'(?:\\.|[^'\\])'", lambda m: "'" + " " * (len(m[0]) - 2) + "'", line)
    return re.sub(r"/\*.*?(\*/|$)", lambda m: " " * len(m[0]), line)


def fields_alike(tree):
    """field -> fields declared beside it in some struct, with the same type."""
    alike = collections.defaultdict(set)
    for path in tree.rglob("*.[ch]"):
        for _, body in STRUCT.findall(re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)):
            kinds = collections.defaultdict(list)
            for kind, names in MEMBER.findall(body):
                kinds[kind] += [name.strip() for name in names.split(",")]
            for names in kinds.values():
                for name in names:
                    alike[name].update(set(names) - {name})
    return alike


def mutants_of(line, alike):
    """All (rule, changed line) of a line."""
    code = blanked(line)
    if SKIPPED.match(code) or not code.strip():
        return
    for rule, pattern, replacement in RULES:
        for match in re.finditer(pattern, code):
            text = match.expand(replacement)
            if rule == "negate":
                end = code.rstrip(" {").rindex(")")
                yield rule, line[:match.start()] + text + line[match.start():end] + ")" + line[end:]
            else:
                yield rule, line[:match.start()] + text + line[match.end():]
    for match in FIELD.finditer(code):
        for other in sorted(alike.get(match[1], ())):
            yield "field", line[:match.start()] + other + line[match.end():]


def run(command, folder, log, limit=None, env=None):
    """Exit status; 124 if it did not end. All that it started is ended with it."""
    with open(log, "wb") as out:
        child = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env,
                                 start_new_session=True)
        try:
            return child.wait(limit)
        except subprocess.TimeoutExpired:
            return 124
        finally:
            try:
                os.killpg(child.pid, 9)
            except ProcessLookupError:
                pass
            child.wait()


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def text_digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def need(command, folder, log):
    if run(command, folder, log):
        sys.exit(f"{' '.join(map(str, command))} failed: {log}")


def variable(build, name):
    return subprocess.run(["make", "-s", f"--eval=show: ; @echo $({name})", "show"], cwd=build, text=True,
                          capture_output=True, check=True).stdout.split()


class Tests:
    """The tests of a build folder, and how long each takes."""

    def __init__(self, build, source):
        left_out = set(variable(build, "LINTS"))
        self.source = source
        self.names = [name for name in variable(build, "TESTS") if name not in left_out]
        unit = {name for name in self.names if not name.endswith(".sh")}
        self.path = "".join(variable(build, "TESTS_PATH"))
        self.shims = [name for name in variable(build, "check_PROGRAMS") if name not in unit]

    def make(self, test, build, log):
        """Make what a test needs, one after the other: all is made by a make of its own. Returns the first target that
        cannot be made, or None."""
        targets = ["iobench", "all", *self.shims] if test.endswith(".sh") else ["all", test] if "/cuda/" in test else [test]
        for some in (targets[:1], targets[1:2], targets[2:]):
            if some and run(["make", "-j2", *some], build, log, 900):
                return some[0]
        return None

    def run(self, test, build, limit, env=None):
        command = ["sh", f"{self.source}/{test}"] if test.endswith(".sh") else [f"./{test}"]
        folder = pathlib.Path(build) / "tmp"
        folder.mkdir(exist_ok=True)
        env = dict(os.environ, srcdir=str(self.source), TMPDIR=str(folder), OMP_WAIT_POLICY="passive", CC="gcc",
                   PATH=self.path + os.environ["PATH"], **(env or {}))
        try:
            return run(command, build, folder / (test.replace("/", "_") + ".log"), limit, env)
        finally:  # ranks have sessions of their own: one that never ends would outlive the test
            for link in pathlib.Path("/proc").glob("[0-9]*/exe"):
                try:
                    if os.readlink(link).startswith(f"{pathlib.Path(build).resolve()}/iobench"):
                        os.kill(int(link.parent.name), 9)
                except OSError:
                    pass


class Coverage:
    """Which tests reach a line."""

    def __init__(self, work, tests, limit, workers):
        self.work, self.build, self.cache = work, work / "cover", {}
        # Counts belong to the objects that made them: another program or module, its tests again.
        record = work / "tests.json"
        known = json.loads(record.read_text()) if record.exists() else {}
        modules = "".join(digest(path) for path in sorted(self.build.glob("*.so")))
        program = modules + digest(self.build / "iobench")
        keys = {test: text_digest(program + digest(tests.source / test) if test.endswith(".sh") else
                                  modules + digest(self.build / test)) for test in tests.names}
        limits = {test: limit if test.endswith(".sh") else 1200 for test in tests.names}
        known = {test: row for test, row in known.items() if keys.get(test) == row[1] and row[2] in (None, limits[test])}
        missing = [test for test in tests.names if test not in known]
        with concurrent.futures.ThreadPoolExecutor(3 * workers) as pool:
            done = [pool.submit(self.measure, test, tests, limits[test]) for test in missing]
            for count, future in enumerate(concurrent.futures.as_completed(done), 1):
                test, status, seconds = future.result()
                known[test] = seconds if status == 0 else None, keys[test], limits[test] if status == 124 else None
                record.write_text(json.dumps(known, indent=1))
                print(f"{count}/{len(missing)} {test} {status} {seconds:.1f} s", flush=True)
        self.slow = sorted(test for test, row in known.items() if row[2])
        self.seconds = {test: row[0] for test, row in known.items() if not row[2]}
        self.keys, self.blind = keys, []
        # What gcov says of a file takes a second for each test: kept as long as all counts are the same.
        self.kept = work / "lines" / text_digest(json.dumps(known, sort_keys=True))
        self.kept.mkdir(parents=True, exist_ok=True)

    def measure(self, test, tests, limit):
        folder = self.work / "seen" / test.replace("/", "_")
        shutil.rmtree(folder, ignore_errors=True)
        began = time.monotonic()
        status = tests.run(test, self.build, limit, {"GCOV_PREFIX": str(folder)})
        return test, status, time.monotonic() - began

    def lines(self, path):
        """line -> tests, and 0 -> the lines of code. Notes lie in the build, counts below each test's folder."""
        kept = self.kept / path.replace("/", "_")
        if path not in self.cache and kept.exists():
            self.cache[path] = {int(line): tests for line, tests in json.loads(kept.read_text()).items()}
        if path not in self.cache:
            reached, stem, code = collections.defaultdict(list), path[:-2], set()
            for test in self.seconds:
                place = self.work / "seen" / test.replace("/", "_") / str(self.build)[1:]
                for counts in [*place.glob(stem + ".gcda"), *place.glob(str(pathlib.Path(stem).parent) + "/*-" +
                                                                        pathlib.Path(stem).name + ".gcda")]:
                    notes = counts.with_suffix(".gcno")
                    if not notes.exists():
                        notes.symlink_to(self.build / notes.relative_to(place))
                    gcov = subprocess.run(["gcov", "-j", "-t", counts.name], cwd=counts.parent, capture_output=True)
                    for file in json.loads(gcov.stdout or b'{"files":[]}')["files"]:
                        if file["file"].endswith("/" + path):
                            code.update(line["line_number"] for line in file["lines"])
                            for line in file["lines"]:
                                if line["count"] and test not in reached[line["line_number"]]:
                                    reached[line["line_number"]].append(test)
            reached[0] = sorted(code)
            kept.write_text(json.dumps(reached))
            self.cache[path] = reached
        return self.cache[path]

    def adopt(self, tests, build, limit):
        """Tests that fail or skip with gcov, as those of the sandbox do, may pass without it. What they reach is unknown:
        they are taken for files with a word of their name."""
        record = self.work / "blind.json"
        known = json.loads(record.read_text()) if record.exists() else {}
        for test in [test for test, seconds in self.seconds.items() if seconds is None]:
            if known.get(test, [None])[0] != self.keys[test]:
                began = time.monotonic()
                if tests.make(test, build, self.work / "blind.log"):
                    sys.exit(f"make failed: {self.work}/blind.log")
                passed = tests.run(test, build, limit) == 0
                known[test] = self.keys[test], time.monotonic() - began if passed else None
                record.write_text(json.dumps(known, indent=1))
            self.seconds[test] = known[test][1]
            self.blind += [test] if self.seconds[test] else []

    def reaching(self, path, number):
        """The tests that reach a line. gcov counts where a statement begins; of data, which it does not count, those that
        reach the file, or else all."""
        lines = self.lines(path)
        source = (self.work / "cover-tree" / path).read_text().split("\n")
        while number and number not in lines[0]:
            number = 0 if source[number - 2].startswith("}") else number - 1
        words = set(re.split(r"\W|_", path[:-2]))
        blind = [test for test in self.blind if words & set(re.split(r"\W|_", test))]
        if number in lines[0]:
            return lines.get(number, []) + blind
        near = sorted({test for line, tests in lines.items() if line for test in tests})
        return near + blind or list(self.seconds)

    def order(self, path, tests):
        """Nearest first: a unit test of the same name, of the same words, then the shortest."""
        words = set(re.split(r"\W|_", path[:-2]))

        def distance(test):
            near = len(words & set(re.split(r"\W|_", test)))
            return test.endswith(".sh"), -near, self.seconds[test]
        return sorted((test for test in tests if self.seconds[test] is not None), key=distance)


class Bench:
    """A build folder with a tree of its own, in which mutants are tried."""

    def __init__(self, work, name, fresh, configured):
        self.tree, self.build, self.fresh = work / name / "tree", work / name / "build", fresh
        self.build.mkdir(parents=True, exist_ok=True)
        refresh(fresh, self.tree)
        if not (self.build / "config.status").exists():
            need(["sh", "-c", f"../tree/configure -q {configured} CFLAGS='-O1 -g0'"], self.build, work / f"{name}.log")
        need(["make", "-j2"], self.build, work / f"{name}.log")

    def objects(self, path):
        """Compile a file; the content of its objects, or None."""
        stem = pathlib.Path(path)
        names = [stem.with_suffix(".o"), *(p.relative_to(self.build) for p in
                                           self.build.glob(f"{stem.parent}/*-{stem.stem}.o"))]
        names = [str(name) for name in names if (self.build / name).exists()]
        log = self.build / "compile.log"
        if not names or run(["make", *names], self.build, log, 300):
            return None
        return [(self.build / name).read_bytes() for name in names]

    def put(self, path, number, text):
        lines = (self.fresh / path).read_text().split("\n")
        if text is not None:
            lines[number - 1] = text
        (self.tree / path).write_text("\n".join(lines))

    def attempt(self, mutant, tests, coverage, budget):
        """(verdict, text, the tests that ran)"""
        path, number, text = mutant["file"], mutant["line"], mutant["text"]
        before = self.objects(path)
        try:
            self.put(path, number, text)
            after = self.objects(path)
            if after is None or after == before:
                return "void", "does not compile" if after is None else "same object", []
            reaching, ran, began = coverage.order(path, coverage.reaching(path, number)), [], time.monotonic()
            for test in reaching:
                if time.monotonic() - began > budget:
                    break
                unmade = tests.make(test, self.build, self.build / "make.log")
                if unmade == "all" and test.endswith(".sh"):  # by the program: pages, completions
                    return "killed", "make all", []
                if unmade:
                    return "void", f"make {unmade} failed", []
                status = tests.run(test, self.build, 60 + 10 * coverage.seconds[test])
                if status not in (0, 77):
                    return "killed", test + (" did not end" if status == 124 else ""), [test]
                ran.append(test)
            return "SURVIVES", f"{len(ran)} of {len(reaching)} tests that reach it ran", ran
        finally:
            self.put(path, number, None)
            self.objects(path)


def refresh(fresh, tree, patches=None):
    """Make tree equal to fresh but for patches (path -> content); what differs gets a new time, so that it is compiled."""
    for path in fresh.rglob("*"):
        other = tree / path.relative_to(fresh)
        if path.is_symlink():
            if not other.is_symlink():
                other.symlink_to(os.readlink(path))
            continue
        if path.is_dir():
            other.mkdir(parents=True, exist_ok=True)
            continue
        content = (patches or {}).get(str(path.relative_to(fresh)), path.read_bytes())
        if not other.exists() or other.read_bytes() != content:
            shutil.copy2(path, other)
            if path.suffix in (".c", ".h"):
                other.write_bytes(content)


def draw(fresh, options, equivalent):
    """All mutants in the order of the seed: a line has the same weight whatever its rules."""
    alike, lines = fields_alike(fresh), []
    folders = sorted(p.name for p in fresh.iterdir() if p.is_dir() and p.name not in ("tests", "bench", "docs", "packaging"))
    for path in sorted(p for folder in folders for p in (fresh / folder).rglob("*.c")):
        name = str(path.relative_to(fresh))
        if name.startswith(tuple(options.folder.split() or [""])) and not name.startswith(tuple(options.without.split())):
            lines += [(name, i, line) for i, line in enumerate(path.read_text().split("\n"), 1)]
    rng = random.Random(options.seed)
    rng.shuffle(lines)
    for name, number, line in lines:
        choices = list(mutants_of(line, alike))
        rng.shuffle(choices)
        for rule, text in choices[:1]:
            if (name, line.strip(), text.strip()) not in equivalent:
                yield {"file": name, "line": number, "old": line, "text": text, "rule": rule}


def equivalents(path):
    rows = [line.split(" | ") for line in path.read_text().splitlines() if line and not line.startswith("#")]
    for row in rows:
        if len(row) != 4:
            sys.exit(f"{path}: not FILE | LINE | CHANGED LINE | REASON: {' | '.join(row)}")
    return {tuple(row[:3]) for row in rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--folder", default="", help="only files whose path begins with one of these words")
    parser.add_argument("--without", default="", help="no file whose path begins with one of these words")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--slow", type=float, default=1200, help="leave out scripts that take more seconds with gcov")
    parser.add_argument("--budget", type=float, default=1e9, help="seconds of tests after which a mutant survives")
    options = parser.parse_args()
    build, work = pathlib.Path.cwd(), pathlib.Path.cwd() / "mutants.work" / "generated"
    work.mkdir(parents=True, exist_ok=True)
    os.environ.update(CCACHE_BASEDIR=str(work), CCACHE_NOHASHDIR="1")
    fresh = work / "fresh"
    shutil.rmtree(fresh, ignore_errors=True)
    need(["make", "-s", "distdir", "distdir=mutants.work/generated/fresh"], build, work / "distdir.log")
    configured = subprocess.run([build / "config.status", "--config"], text=True, capture_output=True,
                                check=True).stdout.strip()
    configured = re.sub(r"'?CFLAGS=[^']*'|'?--enable-werror'?", "", configured)

    cover_tree = work / "cover-tree"
    # A confined process could not write its counts.
    refresh(fresh, cover_tree, {"base/child.c": (fresh / "base/child.c").read_bytes().replace(
        b"syscall(SYS_landlock_create_ruleset, NULL, 0, QUERY_VERSION)", b"0")})
    (work / "cover").mkdir(exist_ok=True)
    if not (work / "cover/config.status").exists():
        need(["sh", "-c", f"../cover-tree/configure -q {configured} CFLAGS='-O0 -g0 --coverage -fprofile-update=atomic'"],
             work / "cover", work / "cover.log")
    need(["make", "-j2"], work / "cover", work / "cover.log")
    tests = Tests(work / "cover", cover_tree)
    need(["make", "-j2", "check", "TESTS="], work / "cover", work / "cover.log")
    coverage = Coverage(work, tests, options.slow, options.workers)
    failing = [test for test, seconds in coverage.seconds.items() if seconds is None]
    print(f"{len(tests.names)} tests, {len(failing)} of them fail or skip without a mutant: {' '.join(failing)}")
    print(f"{len(coverage.slow)} scripts take more than {options.slow:g} s: {' '.join(coverage.slow)}", flush=True)

    benches = [Bench(work, str(i), fresh, configured) for i in range(options.workers)]
    coverage.adopt(Tests(benches[0].build, benches[0].tree), benches[0].build, options.slow)
    drawn = draw(fresh, options, equivalents(fresh / "tests/mutants/equivalent.list"))
    lock, rows, record, stopped = threading.Lock(), [], work / f"seed{options.seed}.json", threading.Event()
    former = {row["key"]: row for row in json.loads(record.read_text())} if record.exists() else {}
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())

    def basis(mutant, ran):
        """What a verdict depends on; of one that survives, also which tests reach the line."""
        row = [digest(fresh / mutant["file"]), [coverage.keys.get(test) for test in ran]]
        if mutant["verdict"] == "SURVIVES":
            row += [options.budget, sorted(coverage.reaching(mutant["file"], mutant["line"]))]
        return text_digest(json.dumps(row))

    def still(mutant):
        """Its verdict of an earlier call, if that would be the same."""
        row = former.get(mutant["key"])
        if not row or row["basis"] != basis(row, row["ran"]):
            return False
        mutant.update(row)
        return True

    def work_on(bench):
        bench_tests = Tests(bench.build, bench.tree)
        while not stopped.is_set():
            with lock:
                if sum(row["verdict"] != "void" for row in rows) >= options.count:
                    return
                mutant = next(drawn, None)
                if not mutant:
                    return
                rows.append(mutant)
                mutant["key"] = text_digest(json.dumps([mutant[name] for name in ("file", "line", "old", "text")]))
                mutant["verdict"] = "pending"
            if not still(mutant):
                mutant["verdict"], mutant["why"], mutant["ran"] = bench.attempt(mutant, bench_tests, coverage,
                                                                                options.budget)
                mutant["basis"] = basis(mutant, mutant["ran"])
            with lock:
                done = [row for row in rows if row["verdict"] != "pending"]
                kept = {row["key"]: row for row in done}
                record.write_text(json.dumps([*done, *(row for key, row in former.items() if key not in kept)], indent=1))
            if mutant["verdict"] != "void":
                judged = sum(row["verdict"] != "void" for row in done)
                print("{0:3} {verdict:9} {file}:{line} {rule}: {why}".format(judged, **mutant), flush=True)
                if mutant["verdict"] == "SURVIVES":
                    print(f"          - {mutant['old'].strip()}\n          + {mutant['text'].strip()}", flush=True)

    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        list(pool.map(work_on, benches))
    rows = [row for row in rows if row["verdict"] in ("killed", "SURVIVES")]
    folders = collections.Counter(row["file"].split("/")[0] for row in rows)
    killed = collections.Counter(row["file"].split("/")[0] for row in rows if row["verdict"] == "killed")
    for folder, count in sorted(folders.items()):
        print(f"{folder:12} {killed[folder]:4} of {count:4} killed {100 * killed[folder] / count:5.1f}%")
    print(f"{sum(killed.values())} of {len(rows)} killed, seed {options.seed}")


if __name__ == "__main__":
    main()
