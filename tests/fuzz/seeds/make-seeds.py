"""Writes the seeds of the weights and pickle readers, with PyTorch (1.13 or later). Run it in this folder."""
import collections
import pickle
import zipfile

import torch


def state_dict():
    base = torch.arange(12, dtype=torch.float32)
    return collections.OrderedDict(
        [
            ("conv.weight", base.reshape(2, 2, 3)),
            ("conv.bias", base[3:5]),  # shares the storage
            ("turned", base.reshape(3, 4).t()),
            ("half", torch.ones(3, dtype=torch.float16)),
            ("n", torch.tensor(5)),
            ("empty", torch.zeros(0, 2)),
        ]
    )


plain = state_dict()
detector = {
    "meta": {"epoch": 3, "CLASSES": ("cat", "dog"), "time": "now", "lr": 0.5},
    "state_dict": {"backbone": torch.nn.Parameter(torch.ones(2)), "flag": torch.tensor([True, False])},
    "optimizer": {"state": {0: {"momentum_buffer": torch.zeros(2)}}, "param_groups": [{"lr": 1e-2, "params": [0]}]},
}
torch.save(plain, "plain.pth")
torch.save(detector, "detector.pth")
torch.save(plain, "plain-old.pth", _use_new_zipfile_serialization=False)
torch.save(detector, "detector-old.pth", _use_new_zipfile_serialization=False)
for name in ("plain", "detector"):
    with zipfile.ZipFile(name + ".pth") as archive:
        with open(name + ".pkl", "wb") as file:
            file.write(archive.read(name + "/data.pkl"))
others = {"a": [1, 2.5, None, True, (1, 2, 3, 4), b"x" * 300, "y" * 300, 1 << 40, -1, {}], "b": ()}
for protocol in (2, 4, 5):
    with open("values-%d.pkl" % protocol, "wb") as file:
        file.write(pickle.dumps(others, protocol))
