#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make tests/golden/trainer.golden: PyTorch's results for the networks of the trainer.

Run by hand: make_trainer.py > trainer.golden. Needs PyTorch (1.10 or later) and NumPy; made with
1.13 on a CPU. No code of iobench is used: networks, optimisers and the generator of weights and
images are reimplemented here, so the file needs to contain results only.

Results are computed in double and also in single precision. Each result has the distance between
the two, which is the effect of rounding alone; tests/unit/test_trainer_golden.c derives its
tolerances from it. Lines are: what, name, distance, values.
"""
import math
import sys

import numpy
import torch
import torch.nn.functional as F

SEED = 20240607
GAMMA = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1
STEPS = 10
SAMPLES = 4
MOMENTUM, DECAY, SMOOTHING, ETA = 0.9, 1e-4, 0.1, 0.01


# ---- base/random.h ----

def mix(value):
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def mixed_array(key, count):
    """random_mix(key + index * GAMMA) for every index."""
    with numpy.errstate(over="ignore"):
        v = numpy.uint64(key) + numpy.arange(count, dtype=numpy.uint64) * numpy.uint64(GAMMA)
        v = (v ^ (v >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        v = (v ^ (v >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        return v ^ (v >> numpy.uint64(31))


def key_of(stream, number):
    """random_hash(SEED, stream, number)"""
    value = mix((SEED + GAMMA) & MASK)
    value = mix(value ^ ((stream + GAMMA * 2) & MASK))
    return mix(value ^ ((number + GAMMA * 3) & MASK))


PARAMETERS, IMAGES, LABELS, PROJECTIONS, PLACES = range(5)


def spread(stream, number, count):
    """Uniform, 24 bits, with mean 0 and deviation 1."""
    units = (mixed_array(key_of(stream, number), count) >> numpy.uint64(40)) * 2.0**-24
    return (units - 0.5) * math.sqrt(12)


# ---- networks ----

class Network:
    """Keeps parameters in the order of requests, which is the order of the graph."""

    def __init__(self, dtype):
        self.dtype = dtype
        self.parameters = {}
        self.statistics = {}
        self.training = True

    def parameter(self, name, shape, center, deviation):
        if name not in self.parameters:
            values = spread(PARAMETERS, len(self.parameters), math.prod(shape))
            values = (center + deviation * values).astype(numpy.float32).reshape(shape)
            self.parameters[name] = torch.tensor(values, dtype=self.dtype, requires_grad=True)
        return self.parameters[name]

    def conv(self, name, x, channels, window, stride=1, pad=(0, 0), groups=1, bias=False):
        shape = (channels, x.shape[1] // groups) + window
        w = self.parameter(name + ".weight", shape, 0, math.sqrt(2 / math.prod(shape[1:])))
        b = self.parameter(name + ".bias", (channels,), 0, 0.1) if bias else None
        return F.conv2d(x, w, b, stride, pad, 1, groups)

    def bn(self, name, x):
        channels = x.shape[1]
        # The last BN of a block starts small, as in practice: otherwise rounding grows per block.
        center = 0.25 if name.endswith("bn3") else 1
        gamma = self.parameter(name + ".gamma", (channels,), center, 0.1)
        beta = self.parameter(name + ".beta", (channels,), 0, 0.1)
        if name not in self.statistics:
            self.statistics[name] = (torch.zeros(channels, dtype=self.dtype),
                                     torch.ones(channels, dtype=self.dtype))
        mean, variance = self.statistics[name]
        return F.batch_norm(x, mean, variance, gamma, beta, self.training, 0.1, 1e-5)

    def fc(self, name, x, channels):
        x = x.flatten(1)
        w = self.parameter(name + ".weight", (channels, x.shape[1]), 0, math.sqrt(1 / x.shape[1]))
        return F.linear(x, w, self.parameter(name + ".bias", (channels,), 0, 0.1))


def square(side, stride=1, pad=0):
    return {"window": (side, side), "stride": stride, "pad": (pad, pad)}


def bottleneck(net, name, x, width, stride):
    y = F.relu(net.bn(name + ".bn1", net.conv(name + ".conv1", x, width, **square(1))))
    y = F.relu(net.bn(name + ".bn2", net.conv(name + ".conv2", y, width, **square(3, stride, 1))))
    y = net.bn(name + ".bn3", net.conv(name + ".conv3", y, 4 * width, **square(1)))
    if stride != 1 or x.shape[1] != 4 * width:
        x = net.bn(name + ".bn0", net.conv(name + ".conv0", x, 4 * width, **square(1, stride)))
    return F.relu(x + y)


def stages(net, x, width, depths, classes):
    for stage, depth in enumerate(depths):
        for i in range(depth):
            x = bottleneck(net, f"stage{stage + 1}.block{i + 1}", x, width << stage,
                           2 if stage > 0 and i == 0 else 1)
    return net.fc("fc", x.mean((2, 3)), classes)


def tiny(net, x, classes):
    x = F.relu(net.bn("stem.bn", net.conv("stem.conv", x, 16, **square(3, 1, 1))))
    return stages(net, x, 16, (1, 1, 1, 1), classes)


def resnet50(net, x, classes):
    x = F.relu(net.bn("stem.bn", net.conv("stem.conv", x, 64, **square(7, 2, 3))))
    return stages(net, F.max_pool2d(x, 3, 2, 1), 64, (3, 4, 6, 3), classes)


def pieces(net, x, classes):
    """What the other two networks lack; the graph is in test_trainer_golden.c."""
    x = F.relu(net.conv("conv1", x, 8, **square(5, 2, 2), bias=True))
    x = F.max_pool2d(F.local_response_norm(x, 5, 0.5, 0.75, 1), 3, 2)
    x = F.relu(net.conv("conv2", x, 12, **square(3, 1, 1), groups=2, bias=True))
    a = F.relu(net.conv("one", x, 6, **square(1), bias=True))
    b = F.relu(net.conv("flat", x, 5, window=(1, 3), pad=(0, 1), bias=True))
    c = net.conv("pooled", F.avg_pool2d(x, 3, 1, 1, count_include_pad=False), 4, **square(1))
    d = F.avg_pool2d(x, 3, 1, 1, count_include_pad=True)
    x = F.relu(net.bn("bn", torch.cat((a, b, c, d), 1)))
    x = F.max_pool2d(x, 3, 2, 1)
    x = F.relu(net.fc("hidden", x, 16))
    return net.fc("logits", x, classes)


# ---- a run ----

def batch(step, count, side, classes, dtype):
    pixels = (mixed_array(key_of(IMAGES, step), count * side * side * 3) >> numpy.uint64(56))
    x = torch.tensor(pixels.astype(numpy.float32)).reshape(count, side, side, 3).permute(0, 3, 1, 2)
    mean = torch.tensor([123.675, 116.28, 103.53], dtype=torch.float32).to(dtype)
    deviation = torch.tensor([58.395, 57.12, 57.375], dtype=torch.float32).to(dtype)
    x = (x.to(dtype) - mean[:, None, None]) / deviation[:, None, None]
    labels = mixed_array(key_of(LABELS, step), count) % numpy.uint64(classes)
    return x, torch.tensor(labels.astype(numpy.int64))


def rate_of(rate, step):
    """Rise and fall, so that LARS has something to rescale."""
    return rate * (1 + step % 3)


def update(recipe, net, momenta, rate, before):
    for name, w in net.parameters.items():
        decays = name.endswith(".weight")
        decay = DECAY if decays else 0.0
        g, m = w.grad, momenta.setdefault(name, torch.zeros_like(w))
        if recipe == "sgd":
            m.mul_(MOMENTUM).add_(g + decay * w)
            w.sub_(rate * m)
            continue
        local = 1.0
        if decays:
            local = ETA * float(w.norm()) / (float(g.norm()) + decay * float(w.norm()))
        m.mul_(MOMENTUM * rate / before if before else MOMENTUM).add_(rate * local * (g + decay * w))
        w.sub_(m)


def infer(net, build, x, classes):
    net.training = False
    with torch.no_grad():
        logits = build(net, x, classes)
    net.training = True
    return logits


def run(build, recipe, count, side, classes, rate, dtype):
    """Return everything to compare, as name -> array."""
    net, momenta, out, losses = Network(dtype), {}, {}, []
    for step in range(STEPS):
        x, labels = batch(step, count, side, classes, dtype)
        logits = build(net, x, classes)
        loss = F.cross_entropy(logits, labels, label_smoothing=SMOOTHING)
        for w in net.parameters.values():
            w.grad = None
        loss.backward()
        losses.append(loss.item())
        if step == 0 and recipe == "sgd":
            for name, w in net.parameters.items():
                out["gradient", name] = w.grad.detach().clone()
            out["infer", "step0"] = infer(net, build, x, classes)
        with torch.no_grad():
            update(recipe, net, momenta, rate_of(rate, step), step and rate_of(rate, step - 1))
    for step, loss in enumerate(losses):
        out["loss", f"{recipe}{step}"] = torch.tensor([loss])
    if recipe == "sgd":
        x, _ = batch(0, count, side, classes, dtype)
        out["infer", "end"] = infer(net, build, x, classes)
        for name, (mean, variance) in net.statistics.items():
            out["mean", name], out["variance", name] = mean, variance
    return out


def show(what, name, exact, single, number):
    exact = exact.double().flatten().numpy()
    error = numpy.linalg.norm(single.double().flatten().numpy() - exact)
    error /= numpy.linalg.norm(exact)
    if what in ("gradient", "mean", "variance"):
        projection = exact @ spread(PROJECTIONS, number, len(exact))
        places = mixed_array(key_of(PLACES, number), SAMPLES) % numpy.uint64(len(exact))
        values = [numpy.linalg.norm(exact), projection] + [exact[int(i)] for i in places]
    else:
        values = exact
    print(what, name, f"{error:.2e}", *(f"{v:.9g}" for v in values))


def case(name, build, count, side, classes, rates):
    print("network", name, "0", count, side, classes, rates["sgd"], rates.get("lars", 0))
    for recipe, rate in rates.items():
        exact = run(build, recipe, count, side, classes, rate, torch.float64)
        single = run(build, recipe, count, side, classes, rate, torch.float32)
        for number, ((what, which), values) in enumerate(exact.items()):
            show(what, which, values, single[what, which], number)
    sys.stdout.flush()


torch.manual_seed(0)
print("# made by make_trainer.py with PyTorch", torch.__version__.split("+")[0])
case("tiny", tiny, 8, 32, 10, {"sgd": 0.003, "lars": 0.1})
case("pieces", pieces, 6, 24, 12, {"sgd": 0.01, "lars": 0.5})
case("resnet50", resnet50, 8, 64, 20, {"sgd": 0.001})
