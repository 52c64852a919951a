"""`normviz inspect FOLDER`: the stream and the gains of weights on disk, and what is refused."""

from __future__ import annotations

import json
from collections import namedtuple
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from cli_kit import normviz
from crossing_kit import case
from torch import Tensor

from normviz.own_model import weights
from normviz.own_model.library import library
from normviz.own_model.source import MISSING

IDS = [3, 14, 15, 9, 2, 6, 5, 35]
GIVEN = " ".join(map(str, IDS))
SIZES = {
    "vocab_size": 97, "num_hidden_layers": 3, "hidden_size": 32, "intermediate_size": 48,
    "num_attention_heads": 4, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 1,
}  # fmt: skip
GROUPED = {**SIZES, "num_key_value_heads": 2, "head_dim": 8}
GPT2 = {
    "vocab_size": 97, "n_layer": 3, "n_embd": 32, "n_head": 4, "n_positions": 16, "bos_token_id": 1,
    "eos_token_id": 1,
}  # fmt: skip
KINDS: dict[str, tuple[str, str, dict[str, int], str | None]] = {
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", GPT2, "pre"),
    "llama": ("LlamaForCausalLM", "LlamaConfig", GROUPED, "pre"),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", GROUPED, "sandwich"),
    "bert": ("BertModel", "BertConfig", SIZES, "post"),
}
"""Class, configuration, and placement. BERT is saved without a head."""


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the terminal sets ends with the test."""
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.setenv(name, "1")


def made(kind: str) -> Any:
    """A tiny random model whose gains are not all alike."""
    name, config, sizes, _ = KINDS[kind]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = getattr(library(), name)(getattr(library(), config)(**sizes)).eval()
        with torch.no_grad():
            for p in model.parameters():
                if p.ndim == 1:
                    p += 0.1 * torch.randn_like(p)
    return model


def saved(kind: str, folder: Path, **how: Any) -> Path:
    made(kind).save_pretrained(folder, **how)
    return folder


def as_tensorflow_named_them(file: Path) -> None:
    """The names of norms in BERT's own files."""
    safe = import_module("safetensors.torch")
    names = (("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta"))
    tensors = safe.load_file(file)
    for new, old in names:
        tensors = {name.replace(new, old): tensor for name, tensor in tensors.items()}
    safe.save_file(tensors, file, metadata={"format": "pt"})


def read(folder: Path, **given: Any) -> weights.Weights:
    files = weights.find(str(folder))
    assert files is not None
    return weights.read(files, **given)


def plain(folder: Path, kind: str, path: str) -> list[Tensor]:
    """The stream before the first block and after each, by transformers itself."""
    model = getattr(library(), KINDS[kind][0]).from_pretrained(
        folder, attn_implementation="eager", local_files_only=True
    )
    last: list[Any] = []
    at = path if hasattr(model, path.split(".")[0]) else path.split(".", 1)[1]
    blocks: Any = model.get_submodule(at)
    blocks[-1].register_forward_hook(lambda *call: last.append(call[-1]))
    with torch.no_grad():
        streams = model(
            torch.tensor([IDS]), output_hidden_states=True, use_cache=False
        ).hidden_states
    return [*streams[:-1], last[0] if isinstance(last[0], Tensor) else last[0][0]]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_stream_and_gains_are_those_of_transformers_bit_for_bit(kind: str, tmp_path: Path) -> None:
    """In one file, and of Gemma 2 in several; of BERT without its head, and with the names of old files."""
    saved(kind, tmp_path, **({"max_shard_size": "20KB"} if kind == "gemma2" else {}))
    assert (len([*tmp_path.glob("*.safetensors")]) > 1) == (kind == "gemma2")
    if kind == "bert":
        as_tensorflow_named_them(tmp_path / "model.safetensors")
    it = read(tmp_path, tokens=GIVEN)
    assert it.anatomy is not None and it.growth is not None
    assert it.anatomy.main.placement == KINDS[kind][3]
    assert str(it).startswith("The stream's RMS ") and "on your 8 tokens" in it.growth.sentence

    streams = plain(tmp_path, kind, it.growth.stack)
    assert len(streams) == len(it.growth.blocks) == 4
    for x, block in zip(streams, it.growth.blocks, strict=True):
        with case(f"block {block.block}"):
            assert block.rms == float(torch.linalg.vector_norm(x) / x.numel() ** 0.5)
            assert block.rms == pytest.approx(float(x.double().square().mean().sqrt()), rel=1e-6)
            assert block.largest == float(x.abs().max())
            assert block.times_median == float(x.abs().max() / x.abs().median())
            assert block.channel == int(x.abs().amax((0, 1)).argmax()) and not block.massive
            assert (block.branch_ratio is None) == (block.block == 0)

    state = made(kind).state_dict()
    norms = {name for name in state if name.endswith("weight") and state[name].ndim == 1}
    assert len(it.gains) == len(norms)
    for gain in it.gains:
        name = f"{gain.stack}.{gain.block - 1}.{gain.norm}" if gain.block else gain.norm
        weight = state[f"{name.removeprefix('bert.')}.weight"].double() + (kind == "gemma2")
        assert (gain.mean, gain.low, gain.high) == (
            float(weight.mean()), float(weight.min()), float(weight.max()),
        )  # fmt: skip


@pytest.mark.slow
def test_a_planted_massive_channel_is_found_on_a_text_and_written_to_files(tmp_path: Path) -> None:
    """Of GPT-2, whose second FFN adds 500 to channel 5; the text has more words than the model takes."""
    model = made("gpt2")
    with torch.no_grad():
        model.transformer.h[1].mlp.c_proj.bias[5] = 500.0
    model.save_pretrained(tmp_path)
    (text := tmp_path / "text.txt").write_text("the cat " * 20)
    done = normviz("inspect", str(tmp_path), "--text", str(text))
    assert done.exit_code == 2 and "no tokenizer is in" in done.stderr and "--tokens" in done.stderr

    tokenizers: Any = import_module("tokenizers")
    words = tokenizers.models.WordLevel({"the": 1, "cat": 2, "?": 3}, unk_token="?")
    tokenizer = tokenizers.Tokenizer(words)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    library().PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(tmp_path)
    table, picture = tmp_path / "it.csv", tmp_path / "it.svg"
    asked = [
        "inspect",
        str(tmp_path),
        "--text",
        str(text),
        "--out",
        str(table),
        "--plot",
        str(picture),
    ]
    done = normviz(*asked, "--json")
    assert done.exit_code == 0, done.output
    growth = json.loads(done.stdout)["weights"]["growth"]
    assert growth["tokens"] == 16 and "on the first 16 tokens" in growth["sentence"]
    assert "channel 5 after blocks 2 to 3, up to " in growth["sentence"]
    assert [[channel for channel, _ in b["massive"]] for b in growth["blocks"]] == [
        [],
        [],
        [5],
        [5],
    ]
    rows = pd.read_csv(table)
    assert [*rows["block"][:4]] == [0, 1, 2, 3] and "ln_1 mean" in rows
    assert [*rows["rms"][:4]] == [b["rms"] for b in growth["blocks"]]
    assert picture.read_text().startswith("<svg") and "massive" in picture.read_text().lower()


def test_words_say_no_more_than_the_numbers() -> None:
    def said(*sizes: float, massive: tuple[int, ...] = ()) -> str:
        blocks = tuple(
            weights.Block(
                n, rms, None, 2000 * rms, 2000.0, 7, ((7, 2000.0),) if n in massive else ()
            )
            for n, rms in enumerate(sizes)
        )
        return weights.Growth("h", 512, False, "float32", blocks, None).sentence  # pyrefly: ignore

    assert said(0.9, 3, 41).startswith(
        "The stream's RMS grows from 0.9 to 41 over 2 blocks on your 512"
    )
    assert "goes from 0.9 to 41 over 3 blocks on your 512 tokens, with 50 after block 2." in said(
        0.9, 3, 50, 41
    )
    assert "falls from 2 to 1" in said(2, 1) and "goes from 1 to 1.01" in said(1, 1.01)
    assert "is not finite after block 1." in said(1, float("inf"), float("inf"))
    assert "channel 7 before block 1 and after blocks 1, 3 to 4, up to 2,000 times" in said(
        1, 1, 1, 1, 1, massive=(0, 1, 3, 4)
    )


@pytest.mark.slow
def test_a_file_without_a_configuration_tells_gains_by_names(tmp_path: Path) -> None:
    saved("llama", tmp_path)
    file, norm = tmp_path / "model.safetensors", made("llama").model.layers[2].input_layernorm
    gain = norm.weight.detach().double()
    done = normviz("inspect", str(file), "--tokens", "1")
    assert done.exit_code == 2 and f"give its folder {tmp_path}" in done.stderr
    (tmp_path / "config.json").unlink()
    for named in (file, tmp_path):
        done = normviz("inspect", str(named), "--json")
        assert done.exit_code == 0, done.output
        given = json.loads(done.stdout)["weights"]
        assert "no placement is told, and no text can be run" in given["notes"][0]
        assert len(given["gains"]) == 7 and {
            "stack": "model.layers", "block": 3, "norm": "input_layernorm",
            "mean": float(gain.mean()), "low": float(gain.min()), "high": float(gain.max()),
        } in given["gains"]  # fmt: skip


@pytest.mark.slow
def test_what_can_not_be_read_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = saved("llama", tmp_path / "it")
    file, config = folder / "model.safetensors", folder / "config.json"
    settings, tensors = config.read_text(), file.read_bytes()

    def refused(said: str, *asked: str, named: Path | str = folder) -> None:
        with case(said):
            done = normviz("inspect", str(named), *asked)
            assert done.exit_code == 2 and said in done.stderr, done.output
            assert done.stderr.count("normviz:") == 1 and "Traceback" not in done.output

    refused("--tokens takes the numbers", "--tokens", "one")
    refused("token 97 is not in the model's vocabulary, which has 97", "--tokens", "1 97")
    refused("one of them is enough", "--tokens", "1", "--text", str(config))
    refused("can't be read", "--text", str(tmp_path / "none.txt"))
    refused("allowed is float32 or bfloat16", "--dtype", "int8")
    refused("--plot draws the stream", "--plot", str(tmp_path / "it.svg"))
    refused("need weights: a FOLDER", "--tokens", "1", named=str(config))
    refused("there is no file", named=tmp_path / "none.safetensors")
    refused("no config.json and no *.safetensors", named=tmp_path)
    for name in ("pytorch_model.bin", "it.pt"):
        (tmp_path / name).write_bytes(b"cos\nsystem\n")
        refused("is a pickle, which can run any code", named=tmp_path / name)
    refused("is a pickle, which can run any code", named=tmp_path)

    free = namedtuple("free", "available")(1000)
    with monkeypatch.context() as patch:
        patch.setattr(weights.psutil, "virtual_memory", lambda: free)
        refused("MB in float32, and 0.001 MB of memory are free", "--tokens", "1")
        patch.setattr(weights, "is_installed", lambda: False)
        refused(MISSING)

    quantised = json.loads(settings) | {"quantization_config": {"quant_method": "gptq", "bits": 4}}
    config.write_text(json.dumps(quantised))
    refused("the weights are quantised", "--tokens", "1")
    config.write_text(json.dumps(json.loads(settings) | {"num_hidden_layers": 4}))
    refused("the weights lack model.layers.3.", "--tokens", "1")
    config.write_text(json.dumps(json.loads(settings) | {"hidden_size": 64}))
    refused("the weights do not fit the config.json", "--tokens", "1")
    encoder = {
        "d_model": 32,
        "d_kv": 8,
        "d_ff": 32,
        "num_layers": 2,
        "num_heads": 4,
        "vocab_size": 97,
    }
    config.write_text(json.dumps({"model_type": "t5", **encoder}))
    refused("t5 is an encoder with a decoder", "--tokens", "1")
    config.write_text(settings)

    file.write_bytes(tensors[:100])
    refused("model.safetensors is no safetensors file")
    index = folder / weights.INDEX
    for name, said in (
        ("../x.safetensors", "no file of its folder"),
        ("x.safetensors", "is not in"),
    ):
        index.write_text(json.dumps({"weight_map": {"a": name}}))
        refused(said)
    index.write_text("[]")
    refused("has no weight_map")
    index.unlink()
    file.rename(folder / "pytorch_model.bin")
    refused("pytorch_model.bin is a pickle", "--tokens", "1")
    assert "pytorch_model.bin is a pickle" in read(folder).notes[0]


@pytest.mark.slow
def test_code_of_a_folder_is_not_run(tmp_path: Path) -> None:
    saved("llama", tmp_path)
    config, mark = tmp_path / "config.json", tmp_path / "ran"
    (tmp_path / "own.py").write_text(f"open({str(mark)!r}, 'w')\nclass Own: pass\n")
    code = {"AutoConfig": "own.Own", "AutoModel": "own.Own", "AutoModelForCausalLM": "own.Own"}
    values = json.loads(config.read_text()) | {"auto_map": code}
    config.write_text(json.dumps(values))
    it = read(tmp_path, tokens=GIVEN, dtype="bfloat16")
    assert it.growth is not None and it.growth.blocks[-1].rms and it.growth.dtype == "bfloat16"
    assert "code of its own (auto_map), which was not run: read as llama" in it.notes[0]
    config.write_text(json.dumps(values | {"model_type": "llama_own"}))
    done = normviz("inspect", str(tmp_path), "--tokens", "1")
    assert done.exit_code == 2 and "auto_map), which was not run" in done.stderr
    assert not mark.exists()
