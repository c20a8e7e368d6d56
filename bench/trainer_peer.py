#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of bench/trainer, which starts it: the same network, batch and threads, FP32.

Line protocol: "graph BATCH THREADS CLASSES CLOCK", one line per node and "end" define a network; "train STEPS"
and "infer STEPS" are answered with milliseconds per step, one figure per memory format. Eager mode with
oneDNN, images already normalised, ReLU in place, the fused optimiser.
"""
import sys
import time

import torch
from torch import nn
from torch.nn import functional

FORMATS = {'contiguous': torch.contiguous_format, 'channels_last': torch.channels_last}


class Network(nn.Module):
    """A graph of trainer/graph.h, one row per node: kind, inputs, numbers."""

    def __init__(self, rows):
        super().__init__()
        self.rows = rows
        self.layers = nn.ModuleList([self.layer(*row) for row in rows])
        self.last = {}  # the last node that reads each output
        for number, (_, inputs, _) in enumerate(rows):
            self.last.update({i: number for i in inputs})

    @staticmethod
    def layer(kind, _, n):
        if kind == 'convolution':
            i, o, h, w, stride, top, left, bottom, right, groups, bias = map(int, n)
            assert (top, left) == (bottom, right)
            return nn.Conv2d(i, o, (h, w), stride, (top, left), groups=groups, bias=bool(bias))
        if kind == 'batch_norm':
            return nn.BatchNorm2d(int(n[0]), float(n[1]))
        if kind == 'relu':
            return nn.ReLU(inplace=True)
        if kind in ('max_pool', 'average_pool'):
            h, w, stride, top, left, bottom, right, counted = map(int, n)
            ceil = (top, left) != (bottom, right)  # GoogLeNet's rounding up
            if kind == 'max_pool':
                return nn.MaxPool2d((h, w), stride, (top, left), ceil_mode=ceil)
            return nn.AvgPool2d((h, w), stride, (top, left), ceil, bool(counted))
        if kind == 'fully_connected':
            return nn.Linear(int(n[0]), int(n[1]))
        if kind == 'lrn':
            return nn.LocalResponseNorm(int(n[0]), *map(float, n[1:]))
        if kind == 'dropout':
            return nn.Dropout(float(n[0]))
        return nn.Identity()

    def forward(self, images):
        values = [images]
        for number, (kind, inputs, _) in enumerate(self.rows):
            if number == 0:
                continue
            given = [values[i] for i in inputs]
            if kind == 'add':
                value = given[0] + given[1]
            elif kind == 'concat':
                value = torch.cat(given, 1)
            elif kind == 'fully_connected':
                value = self.layers[number](given[0].flatten(1))
            elif kind == 'relu' and self.last[inputs[0]] != number:
                value = functional.relu(given[0])  # other nodes still read it
            else:
                value = self.layers[number](given[0])
            values.append(value)
            for i in inputs:
                if self.last[i] == number:
                    values[i] = None
        return values[-1].flatten(1)


class Side:
    def __init__(self, rows, shape, classes, memory_format):
        torch.manual_seed(1)
        self.network = Network(rows).to(memory_format=memory_format)
        self.images = torch.randn(shape).to(memory_format=memory_format)
        self.labels = torch.randint(classes, (shape[0],))
        self.optimiser = torch.optim.SGD(self.network.parameters(), 1e-4, 0.9, weight_decay=1e-5,
                                         fused=True)

    def train(self):
        self.network.train()
        self.optimiser.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(self.network(self.images), self.labels)
        loss.backward()
        self.optimiser.step()
        return loss.item()

    def infer(self):
        self.network.eval()
        with torch.inference_mode():
            return self.network(self.images)[0, 0].item()


def main():
    sides, rows, now = {}, [], time.perf_counter
    for line in sys.stdin:
        words = line.split()
        if words[0] == 'graph':
            batch, threads, classes = map(int, words[1:4])
            now = time.process_time if words[4] == 'cpu' else time.perf_counter
            rows = []
            torch.set_num_threads(threads)
        elif words[0] == 'node':  # node KIND INPUTS input... number...
            count = int(words[2])
            rows.append((words[1], list(map(int, words[3:3 + count])), words[3 + count:]))
        elif words[0] == 'end':
            shape = [batch] + [int(n) for n in rows[0][2]]
            sides = {name: Side(rows, shape, classes, form) for name, form in FORMATS.items()}
            print('ready', torch.__version__, *sides, flush=True)
        else:
            times = []
            for side in sides.values():
                start = now()
                for _ in range(int(words[1])):
                    getattr(side, words[0])()
                times.append((now() - start) / int(words[1]) * 1e3)
            print('took', *times, flush=True)


main()
