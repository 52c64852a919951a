"""The model of each family, uninitialised."""

from __future__ import annotations

import torch

from ..config import RunConfig
from .gnn import GNN
from .mlp import MLP
from .recurrent import Recurrent
from .transformer import Transformer
from .vit import ViT

MODELS: dict[str, type[Transformer]] = {
    "decoder": Transformer, "mlp": MLP, "vit": ViT, "gnn": GNN, "rnn": Recurrent, "lstm": Recurrent,
}  # fmt: skip


def build(config: RunConfig, vocabulary: int) -> Transformer:
    """An uninitialised model of the config's family, with so many symbols or classes: `normviz.model.init`
    fills every parameter."""
    model = MODELS[config.family]
    if torch.get_default_device().type == "cpu":  # naming a device costs a tenth of the time
        return model(config, vocabulary)
    with torch.device("cpu"):
        return model(config, vocabulary)
