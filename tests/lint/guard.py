# SPDX-License-Identifier: Apache-2.0
"""Which functions a command reaches, from the built objects: calls, and functions whose addresses are kept in
tables or passed on. See tests/lint/guard.sh."""
import collections
import re
import subprocess
import sys

# Sources whose readings of the clock become rates that a command prints: reached through a guard only.
MEASURES = """
    cmd/checkpoint/job cmd/checkpoint/save cmd/monitor/monitor cmd/net/measure cmd/pack/pack cmd/pack/packing
    pipeline/engine/engine readers/service""".split()
# Sources that read it for something else, or whose times are parts of an epoch that those measure.
OTHERS = {
    "time limits, naps, progress": """base/ cachectl/ dataset/ ranks/ cmd/net/tcp cmd/net/transport kernels/runtime
        cmd/checkpoint/checkpoint cmd/net/net cmd/study/study cmd/sweep/sweep pipeline/jobs/run
        pipeline/jobs/session pipeline/result/timeline readers/handles
        cmd/line""",
    "marks in series": "telemetry/series telemetry/guard",
    "parts of a checkpoint": "cmd/checkpoint/registry cmd/checkpoint/writer_uring",
    "parts of an epoch": """pipeline/engine/ pipeline/loader/ pipeline/jobs/train readers/ trainer/
        shuffle/plan decode/""",
    "what computing costs, of no storage": "shuffle/quality",
}
# No figure of theirs is kept: they look whether it works, show progress, or make what will be measured.
TRIALS = {"cmd/pack/packing:pack_show_look", "cmd/size/size:open_reader", "cmd/pack/pack:generate"}
CLOCK, BEGIN, END, JUDGE = "clock_now_ns", "guard_begin", "guard_end", "guard_judge"


def plain(name):
    return re.sub(r"\.(cold|part|constprop|isra|lto_priv).*$", "", name)


def source_of(path):
    path = re.sub(r"^\./|\.o$", "", path)
    return re.sub(r"/[a-z_0-9]*_(?:so|a)-", "/", path)


class Graph:
    """edges: {"file:name": {"file:name", ...}}; a name of a library is alone."""

    def __init__(self):
        self.edges = collections.defaultdict(set)
        self.where = {}  # global name -> node

    def node(self, name):
        return self.where.get(name, name)

    def names(self, node):
        return {self.node(name) for name in self.edges[node]}


def symbols_of(objects):
    """{file: {section: [(from, to, name)]}} and the global names."""
    found, where = collections.defaultdict(lambda: collections.defaultdict(list)), {}
    text = subprocess.run(["objdump", "-t", *objects], capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        head = re.match(r"(\S+\.o): ", line)
        if head:
            source = source_of(head[1])
        row = re.match(r"([0-9a-f]{16}) (.{7}) (\S+)\t([0-9a-f]{16}) (?:\.hidden )?(\S+)$", line)
        if not row or row[3] in ("*UND*", "*ABS*", "*COM*") or "d" in row[2]:
            continue
        name, start = plain(row[5]), int(row[1], 16)
        found[source][row[3]].append((start, start + max(int(row[4], 16), 1), name))
        if row[2][0] in "gu!" or "w" in row[2]:
            where.setdefault(name, f"{source}:{name}")
    return found, where


def build(objects):
    graph = Graph()
    symbols, graph.where = symbols_of(objects)

    def at(source, section, offset):
        for start, end, name in symbols[source][section]:
            if start <= offset < end:
                return f"{source}:{name}"
        return None

    def target(source, value):
        """Of a relocation, "name-0x4" or ".text+0x40"; a place in code is 4 bytes before what it is relative to."""
        part = re.match(r"(.+?)([-+]0x[0-9a-f]+)?$", value)
        name, offset = part[1], int(part[2] or "0", 16)
        if name in symbols[source] or name.startswith("."):
            return at(source, name, offset + 4) or at(source, name, offset)
        local = f"{source}:{plain(name)}"
        return local if plain(name) not in graph.where else plain(name)

    text = subprocess.run(["objdump", "-dr", "--no-show-raw-insn", *objects], capture_output=True, text=True, check=True).stdout
    source = node = None
    for line in text.splitlines():
        if head := re.match(r"(\S+\.o): ", line):
            source = source_of(head[1])
        elif head := re.match(r"[0-9a-f]{16} <(.+)>:", line):
            node = f"{source}:{plain(head[1])}"
        elif row := re.match(r"\t\t\t[0-9a-f]+: R_\S+\t(\S+)", line):
            if to := target(source, row[1]):
                graph.edges[node].add(to)
        elif row := re.search(r"\t(?:call|jmp|j[a-z]+|lea) .*<([^+>]+)(?:\+0x[0-9a-f]+)?>", line):
            graph.edges[node].add(f"{source}:{plain(row[1])}")
    text = subprocess.run(["objdump", "-r", *objects], capture_output=True, text=True, check=True).stdout
    section = ""
    for line in text.splitlines():
        if head := re.match(r"(\S+\.o): ", line):
            source = source_of(head[1])
        elif head := re.match(r"RELOCATION RECORDS FOR \[(.+)\]", line):
            section = head[1]
        elif (row := re.match(r"([0-9a-f]{16}) R_\S+\s+(\S+)", line)) and section.startswith((".data", ".rodata")):
            of = at(source, section, int(row[1], 16))
            part = re.match(r"(.+?)([-+]0x[0-9a-f]+)?$", row[2])
            name, offset = part[1], int(part[2] or "0", 16)
            if of and name.startswith("."):
                to = at(source, name, offset)
            else:
                to = plain(name) if plain(name) in graph.where else f"{source}:{plain(name)}"
            if of and to:
                graph.edges[of].add(to)
    return graph


def walk(graph, root, stops):
    """{node: the one it was reached from}; nodes for which stops() holds are reached and not left."""
    came = {root: None}
    queue = collections.deque([root])
    while queue:
        node = queue.popleft()
        if stops(node):
            continue
        for to in sorted(graph.names(node)):
            if to not in came:
                came[to] = node
                queue.append(to)
    return came


def is_listed(source, names):
    return any(source == name or name.endswith("/") and source.startswith(name) for name in names)


def faults(graph):
    others = " ".join(OTHERS.values()).split()
    uses = lambda node, name: graph.node(name) in graph.names(node)
    guards = set()
    for node in list(graph.edges):
        begins, ends = uses(node, BEGIN), uses(node, END)
        if begins != ends and not node.startswith("telemetry/guard:"):
            yield f"{node}: has a {BEGIN if begins else END}() without the other"
        if begins and ends:
            guards.add(node)
        source = node.split(":")[0]
        if uses(node, CLOCK) and not is_listed(source, MEASURES) and not is_listed(source, others):
            yield f"{source}.c: reads the clock: does it measure? Name it in tests/lint/guard.py"
    roots = [node for name, node in sorted(graph.where.items()) if re.fullmatch(r"command_[a-z]+", name) and node in graph.edges
             and node.startswith("cmd/") and not node.startswith(("cmd/command:", "cmd/registry:"))]
    for root in roots:
        # Commands that run the others reach what these reach.
        is_other = lambda node: node != root and node in roots
        open_ = walk(graph, root, lambda node: node in guards or node in TRIALS or is_other(node))
        for node in open_:
            if node in guards or node in TRIALS or not uses(node, CLOCK) or not is_listed(node.split(":")[0], MEASURES):
                continue
            path, at = [], node
            while at:
                path.append(at.split(":")[1])
                at = open_[at]
            yield f"{node}: measures without a guard: {' <- '.join(path)}"
        reached = walk(graph, root, is_other)
        if graph.node(END) in reached and graph.node(JUDGE) not in reached:
            yield f"{root}: guards what it measures and does not judge it"
    if len(roots) < 10 or len(guards) < 8:
        yield f"only {len(roots)} commands and {len(guards)} guards were found: this lint is blind"


def without(graph, names):
    """A copy in which nobody calls these."""
    copy = Graph()
    copy.where = graph.where
    for node, to in graph.edges.items():
        copy.edges[node] = {name for name in to if graph.node(name) not in {graph.node(one) for one in names}}
    return copy


def main():
    graph = build(sys.stdin.read().split())
    for names, words in (([BEGIN], "without the other"), ([END], "without the other"), ([BEGIN, END], "measures without a guard"),
                         ([JUDGE], "does not judge it")):
        if not any(words in fault for fault in faults(without(graph, names))):
            print(f"this lint does not see that nobody calls {' and '.join(names)}()")
    for fault in sorted(set(faults(graph))):
        print(fault)


main()
