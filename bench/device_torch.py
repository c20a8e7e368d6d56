#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of bench/device_steps: ResNet-50 trains on generated images, NHWC, with the same
optimiser and loss, from pinned bytes uploaded for each step.

Prints one line per network, batch, precision and mode: eager (AMP, channels_last) or compiled (torch.compile).
FP16 uses a loss scale. Cases that do not fit into memory or into --seconds are reported.
"""
import argparse
import time

import torch
from torch.nn import functional

MEAN, DEVIATION = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
TYPES = {'fp16': torch.float16, 'bf16': torch.bfloat16, 'tf32': None, 'fp32': None}


def resnet50():
    """Return torchvision's network if installed: the network itself is not being compared."""
    try:
        from torchvision.models import resnet50 as made
        return made()
    except ImportError:
        import timm
        return timm.create_model('resnet50')


class Job:
    def __init__(self, batch, precision, mode, side, device):
        self.device, self.type = device, TYPES[precision]
        exact = precision == 'fp32'
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = not exact
        torch.backends.cudnn.benchmark = True
        self.network = resnet50().to(device, memory_format=torch.channels_last).train()
        self.optimiser = torch.optim.SGD(self.network.parameters(), lr=0.01, momentum=0.9,
                                         weight_decay=1e-4, fused=device == 'cuda')
        self.scaler = torch.amp.GradScaler(device, enabled=precision == 'fp16' and device == 'cuda')
        pinned = device == 'cuda'
        self.rows = torch.randint(256, (batch, side, side, 3), dtype=torch.uint8, pin_memory=pinned)
        self.labels = torch.randint(1000, (batch,), pin_memory=pinned)
        self.mean = torch.tensor(MEAN, device=device).view(1, 3, 1, 1)
        self.deviation = torch.tensor(DEVIATION, device=device).view(1, 3, 1, 1)
        self.loss = torch.compile(self.forward, dynamic=False) if mode == 'compiled' else self.forward

    def forward(self, rows, labels):
        images = (rows.permute(0, 3, 1, 2).float() - self.mean) / self.deviation
        with torch.autocast(self.device, dtype=self.type, enabled=self.type is not None):
            return functional.cross_entropy(self.network(images), labels, label_smoothing=0.1)

    def step(self):
        rows = self.rows.to(self.device, non_blocking=True)
        labels = self.labels.to(self.device, non_blocking=True)
        self.optimiser.zero_grad(set_to_none=True)
        self.scaler.scale(self.loss(rows, labels)).backward()
        self.scaler.step(self.optimiser)
        self.scaler.update()

    def wait(self):
        if self.device == 'cuda':
            torch.cuda.synchronize()

    def rate(self, warm, seconds):
        for _ in range(warm):
            self.step()
        self.wait()
        start, steps = time.monotonic(), 0
        while time.monotonic() - start < seconds:
            for _ in range(5):
                self.step()
            self.wait()
            steps += 5
        return steps * len(self.labels) / (time.monotonic() - start)


def measure(given, batch, precision, mode):
    name = f'torch {torch.__version__} resnet50 {precision} {mode}, batch {batch}:'
    if time.monotonic() > given.until:
        return print(name, 'skipped: no time left', flush=True)
    start = time.monotonic()
    try:
        rate = Job(batch, precision, mode, given.side, given.device).rate(given.warm, given.measure)
        memory = torch.cuda.max_memory_allocated() / 1e9 if given.device == 'cuda' else 0
        print(name, f'{rate:.0f} images/s; {memory:.1f} GB; '
              f'{time.monotonic() - start:.0f} s in all', flush=True)
    except (RuntimeError, AssertionError) as error:  # includes out of memory
        print(name, 'FAILED:', (str(error).splitlines() or [type(error).__name__])[0], flush=True)
    if given.device == 'cuda':
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    torch.compiler.reset()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--precisions', default='fp16,bf16,tf32,fp32')
    parser.add_argument('--modes', default='eager,compiled')
    parser.add_argument('--batches', default='64,128,256,512,1024')
    parser.add_argument('--seconds', type=float, default=540, help='no measurement begins later')
    parser.add_argument('--measure', type=float, default=3)
    parser.add_argument('--warm', type=int, default=10)
    parser.add_argument('--side', type=int, default=224)
    parser.add_argument('--device', default='cuda')
    given = parser.parse_args()
    given.until = time.monotonic() + given.seconds
    if given.device == 'cuda' and not torch.cuda.is_available():
        print('skipped: PyTorch finds no GPU')
        raise SystemExit(77)
    for precision in given.precisions.split(','):
        for mode in given.modes.split(','):
            for batch in map(int, given.batches.split(',')):
                measure(given, batch, precision, mode)


if __name__ == '__main__':
    main()
