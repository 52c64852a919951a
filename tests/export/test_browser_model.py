"""What a browser trains, in Node: the same initial values, batches and probes as the native tape, and what
differs by rounding alone."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from charts_kit import in_node
from crossing_kit import case
from live_kit import task_with_text, trained_in_node

from normviz import RunConfig, train
from normviz.browser.link import BROWSER_NORMS
from normviz.browser.model import browser_model
from normviz.browser.page import live_schemes
from normviz.catalog import NORMS, PROBES
from normviz.model import draws
from normviz.model.branches import Dropout
from normviz.model.data import make_task
from normviz.model.flat import Flat
from normviz.model.gains import Clock
from normviz.training.engine import Unsupported
from normviz.training.events import Diverged, Step
from normviz.training.loop import begin

SMALL = RunConfig(depth=2, width=16, heads=2, seq_len=8, batch=4, steps=12)


def steps_of(config: RunConfig) -> list[Step]:
    return [event for event in train(config) if isinstance(event, Step)]


def test_names_words_and_numbers_are_those_of_numpy() -> None:
    names = ["batch", "blocks.11.ffn.branch.up.weight", "x" * 55, "x" * 56, "x" * 119, ""]
    asked = [
        (name, seed, step, 9)
        for name, seed, step in itertools.product(names, (0, 2**31 - 1), (0, 7))
    ]
    model = browser_model(SMALL)
    found = in_node(
        """
        import { Tape } from "player/tape.js";
        const tape = await Tape.open(
          readFileSync(new URL("player/tape.wasm")), given.model, { init: "xavier", initSeed: 0 });
        console.log(JSON.stringify(given.asked.map((of) => [...tape.uniform(...of)])));
        """,
        {"model": model, "asked": asked},
    )
    for (name, seed, step, count), numbers in zip(asked, found, strict=True):
        assert numbers == draws.uniform(draws.generator(name, seed, step), count).tolist(), name


def test_batches_and_masks_are_those_of_numpy_bit_for_bit() -> None:
    configs = [
        SMALL.replace(task=task, seq_len=seq_len, dropout=0.3, init_seed=2)
        for task, seq_len in (("markov", 8), ("copy", 14), ("prose", 9))
    ]
    found = in_node(
        """
        import { Tape } from "player/tape.js";
        import { batchOf, heldOutBatch } from "player/batches.js";
        const bytes = readFileSync(new URL("player/tape.wasm")), out = [];
        for (const { model, task } of given) {
          const tape = await Tape.open(bytes, model, { init: "xavier", initSeed: 2, dropout: 0.3 });
          const all = [batchOf(tape, task, 3, 0), batchOf(tape, task, 5, 199), heldOutBatch(tape, task)];
          tape.mask(7);
          const at = (place) => tape.at.values + 4 * place;
          const masks = model.masks.map(([place, size]) => [...tape.floats(at(place), size)]);
          out.push([all.map((batch) => batch && [[...batch.inputs], [...batch.targets]]), masks]);
        }
        console.log(JSON.stringify(out));
        """,
        [{"model": browser_model(c), "task": task_with_text(c.task)} for c in configs],
    )
    for config, (batches, masks) in zip(configs, found, strict=True):
        task = make_task(config)
        three, five = make_task(config.replace(data_seed=3)), make_task(config.replace(data_seed=5))
        expected = [three.batch(0), five.batch(199), task.held_out()]
        for batch, made in zip(expected, batches, strict=True):
            assert made == (batch and [x.ravel().tolist() for x in batch]), config.task
        clock = Clock()
        clock.step = 7
        for site, mask in enumerate(masks):
            assert mask == Dropout(0.3, 2, site, clock).mask(len(mask)).tolist()
        assert len(masks) == 1 + 2 * config.depth


RUNS = [
    SMALL.replace(activation="gelu", init=init, scheme=scheme, **more)
    for init, scheme, more in (
        ("xavier", "pre", {"dropout": 0.2}), ("torch", "post", {"norm": "rmsnorm"}),
        ("gpt2", "deepnorm", {"warmup": 5}),
        ("fairseq", "peri", {"clip": 0.5, "weight_decay": 0.1, "schedule": "cosine", "norm": "derf"}),
        ("torch", "pre", {"task": "prose", "dropout": 0.1, "depth": 5}),
        ("gpt2_width", "prores", {"task": "copy"}),
        ("xavier", "mixln", {"lr_edits": ((4, 0.01), (7, 0.001))}),
        ("torch", "resp", {"qk_norm": "head", "positions": "rope", "depth": 3}),
    )
]  # fmt: skip


@pytest.mark.slow
def test_a_run_is_the_native_one_up_to_rounding() -> None:
    """GELU: a ReLU whose input is within rounding of 0 may fall on either side of it."""
    for config, found in zip(RUNS, trained_in_node(RUNS), strict=True):
        with case(config.scheme):
            model, _ = begin(config)
            flat = Flat(model, next(model.parameters()).device)
            assert flat.values.numpy().view(np.uint32).tolist() == found["values"]
            native = steps_of(config)
            rows = found["rows"]
            assert [row["loss"] for row in rows] == pytest.approx(
                [s.loss for s in native], rel=1e-5
            )
            assert [row["gradNorm"] for row in rows] == pytest.approx(
                [s.grad_norm for s in native], rel=1e-3
            )
            held_out = [(row["step"], row["heldOut"]) for row in rows if row["heldOut"] is not None]
            assert held_out == [
                (s.step, pytest.approx(s.held_out, rel=1e-5)) for s in native if s.held_out
            ]
            for row, step in zip(rows, native, strict=True):
                assert (step.layers is None) == (row["layers"] is None)
                if step.layers is not None:
                    compare_probes(row["layers"], step.layers, step.step)


def compare_probes(found: dict[str, list[float]], layers: np.ndarray, step: int) -> None:
    """A key bias has no gradient but rounding, which AdamW scales to whole steps: it moves all logits of a
    query alike, so no number but the largest logit depends on it."""
    assert set(found) == set(PROBES.keys()[: len(layers)])
    for key, values in found.items():
        if key == "attn_logit_max" and step > 0:
            continue
        expected = layers[PROBES.keys().index(key), PROBES[key].first_layer :]
        if PROBES[key].shown == "one_minus":
            expected, values = 1.0 - expected, [1.0 - x for x in values]
        # A cosine is a mean that may be near 0.
        assert values == pytest.approx(expected, rel=1e-3, abs=1e-5 if "cosine" in key else 1e-7), (
            key
        )


@pytest.mark.slow
def test_a_run_diverges_as_the_native_one_and_memory_is_bounded() -> None:
    config = RunConfig(scheme="none", depth=16, steps=30)
    found, deep = trained_in_node([config, RunConfig(steps=1, depth=24)])
    bad = next(event for event in train(config) if isinstance(event, Diverged))
    assert found["rows"][-1]["bad"] == {"step": bad.step, "layer": bad.layer, "where": bad.where}
    assert 2 * deep["bytes"] < 60e6  # both lanes of a duel


@pytest.mark.slow
def test_every_placement_and_norm_of_the_tape_begins_as_the_native_run() -> None:
    """All placements but two: the loss at step 0 and after an update."""
    schemes = live_schemes()
    assert len(schemes) >= 44 and not {"ngpt", "admin"} & set(schemes)
    turns = itertools.cycle(BROWSER_NORMS)
    pairs = [(scheme, next(turns)) for scheme in schemes]
    some = [
        SMALL.replace(scheme=scheme, norm=norm, activation="gelu", steps=2, depth=2 + 3 * (i % 2))
        for i, (scheme, norm) in enumerate(pairs)
    ]
    for config, found in zip(some, trained_in_node(some), strict=True):
        losses = [row["loss"] for row in found["rows"]]
        with case(f"{config.scheme} {config.norm}"):
            assert losses == pytest.approx([s.loss for s in steps_of(config)], rel=1e-4)


def test_the_norms_of_the_page_are_those_of_the_tape() -> None:
    found = []
    for norm in NORMS.keys():  # noqa: SIM118 (a registry)
        try:
            browser_model(SMALL.replace(norm=norm))
            found.append(norm)
        except Unsupported:
            continue
    assert sorted(found) == sorted(BROWSER_NORMS)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"optimizer": "muon"}, "plain AdamW alone"),
        ({"scheme": "hyper"}, "several streams"), ({"scheme": "admin"}, "admin, which needs PyTorch"),
    ],
    ids=lambda x: str(x),
)  # fmt: skip
def test_what_a_browser_does_not_train_is_a_sentence(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Unsupported, match=sentence):
        browser_model(SMALL.replace(**change))
