#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the loads from global memory in each kernel of nvcc's objects, by width in bits.

    loads.py OBJECT... [--check FILE]

The instructions are read from the code for the device that is within the object: none of NVIDIA's tools is
needed. FILE lists kernels by parts of their names, and the most loads narrower than 128 bits that each may
have: no kernel may exceed that, and each line must match a kernel.
"""
import argparse
import struct
import sys

CUDA, LDG, WIDTHS = 190, (0x381, 0x981), {0: 8, 1: 8, 2: 16, 3: 16, 4: 32, 5: 64, 6: 128}


def sections(elf):
    at, = struct.unpack_from("<Q", elf, 0x28)
    size, count, names = struct.unpack_from("<HHH", elf, 0x3a)
    rows = [struct.unpack_from("<II4Q", elf, at + i * size) for i in range(count)]
    for name, _, _, _, offset, length in rows:
        start = rows[names][4] + name
        yield elf[start:elf.index(0, start)].decode(), elf[offset:offset + length]


def kernels(data):
    """Name and loads by width of each kernel of the first device in the object."""
    at = data.find(b"\x7fELF", 1)
    while at >= 0 and struct.unpack_from("<H", data, at + 18)[0] != CUDA:
        at = data.find(b"\x7fELF", at + 1)
    if at < 0:
        sys.exit("loads.py: an object has no uncompressed code for a device")
    for name, code in sections(memoryview(data)[at:].tobytes()):
        if name.startswith(".text."):
            counts = {}
            for low, high in struct.iter_unpack("<QQ", code):
                if low & 0xfff in LDG:
                    bits = WIDTHS[high >> 9 & 7]
                    counts[bits] = counts.get(bits, 0) + 1
            yield name[len(".text."):], counts


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("objects", nargs="+")
    parser.add_argument("--check")
    given = parser.parse_args()
    found = {}
    for path in given.objects:
        with open(path, "rb") as file:
            found.update(kernels(file.read()))
    if not given.check:
        for name, counts in sorted(found.items()):
            print(name, *(f"{count}x{bits}" for bits, count in sorted(counts.items(), reverse=True)))
        return 0
    failed = 0
    with open(given.check, encoding="ascii") as file:
        rows = [line.split() for line in file if line.strip() and not line.startswith("#")]
    for most, *parts in rows:
        matching = {name: counts for name, counts in found.items() if all(part in name for part in parts)}
        narrow = {name: sum(n for bits, n in counts.items() if bits < 128) for name, counts in matching.items()}
        worst = max(narrow, key=narrow.get, default=None)
        if worst is None or narrow[worst] > int(most):
            failed = 1
            print(f"{' '.join(parts)}: {f'{narrow[worst]} narrow loads in {worst}' if worst else 'no such kernel'},"
                  f" at most {most} allowed")
    return failed


sys.exit(main())
