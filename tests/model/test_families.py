"""Each family against a peer with the same weights: outputs and gradients; the rules of each; the data."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from normviz.catalog import CELLS, FAMILIES
from normviz.config import ConfigError, RunConfig
from normviz.model.data import make_task
from normviz.model.families import build
from normviz.model.graphs import digits_graph, karate
from normviz.model.images import digits
from normviz.model.init import initialise
from normviz.model.recurrent import Recurrent
from normviz.model.transformer import Transformer
from normviz.model.vit import ViT

CLOSE = 1e-6


def made(**settings: object) -> tuple[RunConfig, Transformer, tuple[Tensor, Tensor]]:
    """A model in float64 whose norms and biases are not at their start, and a batch."""
    config = RunConfig(**settings)
    task = make_task(config)
    model = build(config, task.vocabulary)
    initialise(model, config)
    rng = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.1 * torch.randn(p.shape, generator=rng))
    inputs, targets = task.tensors(0, torch.device("cpu"))
    return config, model.double(), (inputs.double() if task.features else inputs, targets)


def same(model: Transformer, batch: tuple[Tensor, Tensor], peer: Tensor) -> None:
    """The peer's logits [n, V] and all gradients of its loss are the model's."""
    inputs, targets = batch
    logits = model(inputs).flatten(0, 1)
    torch.testing.assert_close(logits, peer, rtol=CLOSE, atol=CLOSE)
    parameters = list(model.parameters())
    ours = torch.autograd.grad(model.loss(*batch), parameters)
    theirs = torch.autograd.grad(F.cross_entropy(peer, targets.flatten()), parameters)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=CLOSE, atol=CLOSE)


@pytest.mark.parametrize("family", ["rnn", "lstm"])
@pytest.mark.parametrize("task", ["prose", "digits"])
def test_a_cell_without_a_norm_is_torchs(family: str, task: str) -> None:
    config, model, (inputs, targets) = made(
        family=family, scheme="cell_none", depth=2, width=8, seq_len=8, batch=3, task=task
    )
    assert isinstance(model, Recurrent)
    peer = (nn.LSTM if family == "lstm" else nn.RNN)(8, 8, 2, batch_first=True).double()
    state = peer.state_dict()
    for i, layer in enumerate(model.blocks):
        assert isinstance(layer, nn.Module)
        state[f"weight_ih_l{i}"], state[f"weight_hh_l{i}"] = layer.input.weight, layer.hidden.weight
        state[f"bias_ih_l{i}"], state[f"bias_hh_l{i}"] = layer.bias, torch.zeros_like(layer.bias)
    out, _ = torch.func.functional_call(peer, state, model.embedded(inputs))
    logits = model.head(out if config.task == "prose" else out[:, -1:])
    same(model, (inputs, targets), logits.flatten(0, 1))


def ln(x: Tensor, norm: nn.Module) -> Tensor:
    """LayerNorm, written out."""
    centred = x - x.mean(-1, keepdim=True)
    unit = centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    return unit * norm.weight + norm.bias


@pytest.mark.parametrize("family", ["rnn", "lstm"])
@pytest.mark.parametrize("scheme", ["pre_activation", "between_layers", "cell_and_layers"])
def test_a_cell_with_a_norm_is_the_papers(family: str, scheme: str) -> None:
    _, model, batch = made(family=family, scheme=scheme, depth=2, width=8, seq_len=4, batch=3)
    y = model.embedded(batch[0])
    for layer in model.blocks:
        h, c, out = torch.zeros_like(y[:, 0]), torch.zeros_like(y[:, 0]), []
        for t in range(y.shape[1]):
            of_h, of_x = h @ layer.hidden.weight.T, y[:, t] @ layer.input.weight.T
            if family == "rnn":
                z = of_h + of_x
                h = torch.tanh((ln(z, layer.norm) if CELLS[scheme].in_cell else z) + layer.bias)
            else:
                if CELLS[scheme].in_cell:
                    of_h, of_x = ln(of_h, layer.norm_hidden), ln(of_x, layer.norm_input)
                i, f, g, o = (of_h + of_x + layer.bias).split(8, -1)
                c = f.sigmoid() * c + i.sigmoid() * g.tanh()
                h = o.sigmoid() * (ln(c, layer.norm_cell) if CELLS[scheme].in_cell else c).tanh()
            out.append(ln(h, layer.norm_out) if CELLS[scheme].between else h)
        y = torch.stack(out, 1)
    same(model, batch, model.head(y[:, -1]))


@pytest.mark.slow
def test_a_vit_is_the_one_of_transformers() -> None:
    from transformers import ViTConfig, ViTModel

    config, model, batch = made(family="vit", depth=2, width=8, heads=2, batch=3, activation="gelu")
    assert isinstance(model, ViT)
    peer = ViTModel(
        ViTConfig(
            hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=config.hidden,
            image_size=8, patch_size=2, num_channels=1, layer_norm_eps=1e-5, hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0, attn_implementation="eager",
        ),
        add_pooling_layer=False,
    ).double()  # fmt: skip
    names = {
        "embeddings.cls_token": model.class_token.weight[None],
        "embeddings.position_embeddings": model.positions.weight[None],
        "embeddings.patch_embeddings.projection.weight": model.inputs.weight.view(8, 1, 2, 2),
        "embeddings.patch_embeddings.projection.bias": model.inputs.bias,
        "layernorm.weight": model.final_norm.weight,
        "layernorm.bias": model.final_norm.bias,
    }
    theirs = {name for name, _ in peer.named_parameters()}
    (one,) = (n for n in theirs if n.endswith("0.layernorm_before.weight"))
    prefix = one.removesuffix("0.layernorm_before.weight")
    for b, block in enumerate(model.blocks):
        attention, ffn = block.attention, block.ffn
        for kind in ("weight", "bias"):
            q, k, v = getattr(attention.branch.qkv, kind).chunk(3)
            of = {
                "q_proj": q, "k_proj": k, "v_proj": v, "query": q, "key": k, "value": v,
                "o_proj": getattr(attention.branch.out, kind),
                "attention.output.dense": getattr(attention.branch.out, kind),
                "layernorm_before": getattr(attention.norm_in, kind),
                "layernorm_after": getattr(ffn.norm_in, kind),
                "fc1": getattr(ffn.branch.up, kind), "fc2": getattr(ffn.branch.down, kind),
                "intermediate.dense": getattr(ffn.branch.up, kind),
                "output.dense": getattr(ffn.branch.down, kind),
            }  # fmt: skip
            for name in sorted(n for n in theirs if n.startswith(f"{prefix}{b}.")):
                ends = [end for end in of if name.endswith(f"{end}.{kind}")]
                if ends:
                    names[name] = of[max(ends, key=len)]
    assert names.keys() == theirs
    images = batch[0].view(-1, 1, 8, 8)
    final = torch.func.functional_call(peer, names, (images,)).last_hidden_state
    same(model, batch, model.head(final[:, 0]))


@pytest.mark.parametrize("task", ["karate", "digits_graph"])
def test_messages_are_sums_over_neighbours(task: str) -> None:
    _, model, batch = made(family="gnn", task=task, depth=2, width=8)
    found = (karate if task == "karate" else digits_graph)()
    graph = networkx.Graph(found.edges.tolist())
    near = [[*graph[n], n] for n in range(len(found.labels))]
    x = model.inputs(batch[0])
    for block in model.blocks:
        wire = block.messages
        values = wire.branch.value(ln(x, wire.norm_in))
        sums = [
            sum(values[m] / (len(near[n]) * len(near[m])) ** 0.5 for m in near[n])
            for n in range(len(near))
        ]
        x = x + wire.branch.out(torch.stack([torch.as_tensor(one) for one in sums]))
        z = ln(x, block.ffn.norm_in)
        x = x + block.ffn.branch.down(F.relu(block.ffn.branch.up(z)))
    same(model, batch, model.head(ln(x, model.final_norm)))


@pytest.mark.parametrize("scheme", ["pre", "post"])
def test_an_mlp_is_a_stack_of_linear_maps(scheme: str) -> None:
    _, model, batch = made(family="mlp", scheme=scheme, depth=2, width=8)
    x = model.inputs(batch[0])
    for block in model.blocks:
        for wire in (block.first, block.ffn):
            up, down = wire.branch.up, wire.branch.down
            if scheme == "pre":
                x = x + down(F.relu(up(ln(x, wire.norm_in))))
            else:
                x = ln(x + down(F.relu(up(x))), wire.norm_main)
    same(model, batch, model.head(ln(x, model.final_norm) if scheme == "pre" else x))


def test_the_karate_club_is_networkxs() -> None:
    club, ours = networkx.karate_club_graph(), karate()
    assert [tuple(pair) for pair in ours.edges.tolist()] == list(club.edges)
    sides = [club.nodes[n]["club"] != "Mr. Hi" for n in club]
    assert ours.labels.tolist() == [int(side) for side in sides]


def test_digits_are_whole_and_their_split_is_never_read() -> None:
    pixels, labels = digits()
    assert pixels.shape == (1797, 64) and pixels.min() >= 0 and pixels.max() == 16
    assert np.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    task = make_task(RunConfig(family="mlp", batch=256))
    held_out = {row.tobytes() for row in task.held_out()[0]}
    assert len(held_out) == 359
    assert not any(row.tobytes() in held_out for s in range(20) for row in task.batch(s)[0])


def test_a_graph_shows_as_many_nodes_of_each_class_and_holds_out_the_rest() -> None:
    a, b = (make_task(RunConfig(family="gnn", data_seed=seed)) for seed in (0, 1))
    (_, shown), (_, rest) = a.batch(0), a.held_out()
    assert sorted(shown[shown >= 0].tolist()) == [0] * 4 + [1] * 4
    assert ((shown >= 0) != (rest >= 0)).all()
    assert (shown != b.batch(0)[1]).any()


REFUSED = [
    ({"family": "mlp", "heads": 8}, "it has no attention: leave heads at 4"),
    ({"family": "gnn", "positions": "rope"}, "it has no attention"),
    ({"family": "mlp", "qk_norm": "on"}, "it has no attention"),
    ({"family": "mlp", "scheme": "hybridnorm"}, "about attention"),
    ({"family": "gnn", "scheme": "hyper"}, "has placements of one stream"),
    ({"family": "gnn", "batch": 4}, "each step reads the whole graph"),
    ({"family": "rnn", "scheme": "pre"}, "a place around a residual branch"),
    ({"family": "rnn", "norm": "batchnorm"}, "differ between time steps"),
    ({"family": "lstm", "seq_len": 5}, "choose 2, 4, 8, 16, 32 or 64"),
    ({"family": "vit", "mask": "causal"}, "choose mask=none"),
    ({"family": "vit", "seq_len": 9}, "4, 16 or 64 square patches"),
    ({"family": "vit", "scheme": "ngpt"}, "defined for tokens"),
    ({"family": "mlp", "norm": "batchnorm", "batch": 1}, "no variance over a batch"),
    ({"scheme": "pre_activation"}, "a place in a recurrent net"),
    ({"task": "digits"}, "choose one of them, or family=mlp, vit, rnn or lstm"),
    ({"patch_norm": "dual"}, "only a vit reads patches"),
]


@pytest.mark.parametrize(("settings", "said"), REFUSED)
def test_what_makes_no_sense_gets_one_sentence(settings: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        RunConfig(**settings)
    assert said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("key", FAMILIES.keys())
def test_a_family_is_one_change_away_and_back(key: str) -> None:
    there = RunConfig(init_seed=3, lr=0.001).replace(family=key)
    assert (there.family, there.lr, there.init_seed) == (key, 0.001, 3)
    assert there.replace(family="decoder") == RunConfig(init_seed=3, lr=0.001)
    for other in FAMILIES.keys():  # noqa: SIM118 (a registry)
        assert there.replace(family=other).family == other
