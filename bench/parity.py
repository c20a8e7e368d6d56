#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is our ResNet-50 torchvision's? The same weights, the same images, the logits of both.

    bench/parity.py [--forward build/bench/forward] [--images 16] [--networks resnet50,...] [--venv FOLDER]

Weights go both ways: torchvision's random ones to a safetensors file that we read, and ours to a file that
torchvision loads with strict names. Running statistics and factors of batch norm are drawn at random as well: at
their start they would hide a mistake. The figure is the largest difference of two logits over the largest logit,
the worse of both directions; PyTorch computes in FP64. Needs torch and torchvision, from PyPI in FOLDER, which
`--venv` makes (about 5 GB)."""
import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile

GOAL = 1e-4
NETWORKS = "resnet50,resnet101,resnet152,vgg16,vgg19"


def write_safetensors(path, tensors):
    """tensors: name -> array of float32."""
    header, at = {}, 0
    for name, array in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in tensors.values():
            file.write(array.tobytes())


def read_safetensors(path, torch):
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack_from("<Q", data)[0]
    tensors = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name != "__metadata__":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            tensors[name] = torch.frombuffer(bytearray(data[begin:end]), dtype=torch.float32).reshape(entry["shape"])
    return tensors


def compare(name, options, torch, torchvision, folder):
    side = 224
    # Batch norm needs FP32's range; draw what would otherwise be 0 and 1.
    torch.manual_seed(7)
    model = getattr(torchvision.models, name)(weights=None).eval()
    for layer in model.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):
            layer.weight.data.uniform_(0.5, 1.5)
            layer.bias.data.uniform_(-0.5, 0.5)
            layer.running_mean.uniform_(-0.5, 0.5)
            layer.running_var.uniform_(0.5, 2)
    rows = torch.randint(0, 256, (options.images, side, side, 3), dtype=torch.uint8)
    rows.numpy().tofile(folder + "/rows")
    mean, deviation = torch.tensor([123.675, 116.28, 103.53]), torch.tensor([58.395, 57.12, 57.375])
    images = ((rows.double() - mean) / deviation).permute(0, 3, 1, 2).contiguous()

    def theirs():
        with torch.no_grad():
            return torch.cat([model(part) for part in images.split(4)])

    def ours(weights):
        command = [options.forward, name, options.backend, weights, "1000", str(side), folder + "/rows",
                   folder + "/logits"]
        subprocess.run(command, check=True)
        with open(folder + "/logits", "rb") as file:
            return torch.frombuffer(bytearray(file.read()), dtype=torch.float32).reshape(-1, 1000).double()

    def distance(a, b):
        return ((a - b).abs().max() / b.abs().max()).item()

    state = {key: value.float().numpy() for key, value in model.state_dict().items() if "num_batches" not in key}
    write_safetensors(folder + "/theirs", state)
    model = model.double()
    to_us = distance(ours(folder + "/theirs"), theirs())
    subprocess.run([options.forward, name, options.backend, "", "1000", str(side), "", folder + "/ours"], check=True)
    model = model.float()
    model.load_state_dict(read_safetensors(folder + "/ours", torch), strict=True)
    model = model.double()
    to_them = distance(ours(folder + "/ours"), theirs())
    os.remove(folder + "/ours")
    print(f"{name}: torchvision's weights here {to_us:.3g}, ours there {to_them:.3g} of the largest logit, "
          f"{options.images} images")
    worst = max(to_us, to_them)
    print(f"claim parity_{name} {worst:.9f} of the largest logit goal <={GOAL} {'ok' if worst <= GOAL else 'short'}")
    return worst <= GOAL


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--forward", default="build/bench/forward")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--images", type=int, default=16)
    parser.add_argument("--networks", default=NETWORKS)
    parser.add_argument("--venv")
    options = parser.parse_args()
    if options.venv and not sys.prefix.startswith(os.path.abspath(options.venv)):
        if not os.path.exists(options.venv + "/bin/python"):
            subprocess.run([sys.executable, "-m", "venv", options.venv], check=True)
            subprocess.run([options.venv + "/bin/pip", "install", "-q", "torch", "torchvision"], check=True)
        os.execv(options.venv + "/bin/python", [options.venv + "/bin/python"] + sys.argv)
    try:
        import torch
        import torchvision
    except ImportError as error:
        print(f"parity.py: {error}: --venv FOLDER installs it from PyPI", file=sys.stderr)
        return 77
    print(f"torch {torch.__version__}, torchvision {torchvision.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        good = [compare(name, options, torch, torchvision, folder) for name in options.networks.split(",")]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
