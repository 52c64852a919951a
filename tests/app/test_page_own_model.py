"""The page Your model without a browser: a model type at once, a pasted configuration from a process."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from hosted_kit import turn_on
from page_kit import address, at_page, checked
from streamlit.testing.v1 import AppTest

from normviz.config import RunConfig
from normviz.execution import Ended, Local
from normviz.links import decode
from normviz.own_model import client, shipped
from normviz.studies.maps.link import decode as decode_map
from normviz.studies.maps.link import map_of

LLAMA = json.dumps(
    {
        "model_type": "llama", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 64,
        "auto_map": {"AutoModel": "stranger--code.Model"},
    }
)  # fmt: skip


@pytest.fixture
def own(folder: Path):
    def opened(**params: str) -> AppTest:
        at = at_page("own-model")
        for name, value in params.items():
            at.query_params[name] = value
        return checked(at.run())

    return opened


def paste(at: AppTest, text: str) -> None:
    """Paste a configuration, and press the button."""
    at.text_area(key="own_config").set_value(text)
    checked(at.button(key="own_show").click().run(timeout=120))


def words(at: AppTest) -> str:
    shown = [*at.markdown, *at.caption, *at.info, *at.warning]
    return "\n".join(re.sub(r"\\(.)", r"\1", each.value) for each in shown)


def test_a_model_type_is_shown_without_a_process(own, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the known trouble of its placement, as its anatomy has it: that no mistake was found does
    not deny it. One that is undecided has its reason."""
    monkeypatch.setattr(client, "_result", lambda *_: pytest.fail("a process was started"))
    every = shipped.anatomies()
    at, it = own(model_type="llama"), every["llama"]
    assert not isinstance(it, str)
    said = words(at)
    assert "LlamaForCausalLM" in said and "Pre-LN" in said and f"{it.main.blocks} blocks of" in said
    assert it.main.trouble in said and f"{it.main.blocks} blocks" in it.main.trouble
    assert "No mistake in the code was found." in said and "known to go wrong" not in said
    assert address(at)["model_type"] == "llama"
    assert "All sizes are the defaults of this type's configuration. For yours paste" in said
    checked(at.selectbox(key="own_type").set_value("bert").run())
    assert "Post-LN" in words(at)
    for kind in (next(k for k, it in every.items() if isinstance(it, str)), "mobilebert"):
        checked(at.selectbox(key="own_type").set_value(kind).run())
        assert "not told" in words(at) or "could not be followed" in words(at)
        assert it.main.trouble not in words(at)


def test_each_stack_leads_on_to_what_was_measured_at_its_shape(own) -> None:
    """Choose starts from the model and says what it measured; one map has its placement, the other one its
    depth and norm too, as has the duel."""
    at, it = own(model_type="llama"), shipped.anatomies()["llama"]
    assert not isinstance(it, str)
    links = {link.proto.label: link.proto for link in at.get("page_link")}
    queries = {link.page: parse_qs(link.query_string) for link in reversed(links.values())}
    assert queries["choose"]["start"] == ["existing"] and queries["choose"]["model"] == ["llama"]
    assert "Which placement? Measured at 32 blocks with LayerNorm" in links
    assert decode_map(queries["maps"]).standard == "torch"
    assert "Where Pre-LN trains, with LayerNorm, no QK-norm" in links
    own_map = decode_map(
        parse_qs(
            links[f"Fill a map of {it.main.blocks} blocks with RMSNorm, no QK-norm"].query_string
        )
    )
    assert own_map.fields == ("scheme", "lr") and own_map.values("depth") == str(it.main.blocks)
    assert (own_map.values("norm"), own_map.values("scheme")) == ("rmsnorm", "pre,post,peri")
    first, second = decode(queries[""]).lanes  # the first page
    assert (first.scheme, second.scheme) == ("pre", "post")
    assert {(lane.depth, lane.norm) for lane in (first, second)} == {(it.main.blocks, "rmsnorm")}
    assert "# Your model" in words(at) and "Nothing is trained here" in words(at)


def test_a_map_of_a_placement_that_no_standard_map_has_is_one_beside_pre_ln() -> None:
    def key(scheme: str, **settings: Any) -> str | None:
        return map_of(RunConfig(scheme=scheme, **settings)).standard

    assert (key("deepnorm"), key("resp")) == ("xavier", "modern")
    keel = map_of(RunConfig(scheme="keel"))
    assert keel.words["scheme"] == "pre,keel" and keel.standard is None
    both = {"norm": "rmsnorm", "qk_norm": "head"}
    assert (key("pre"), key("pre", **both), key("pre", norm="rmsnorm")) == (
        "torch",
        "modern",
        "torch",
    )


def test_the_button_is_of_the_text_and_a_model_type_replaces_it(own) -> None:
    at = own()
    assert [b.label for b in at.button if b.key == "own_show"] == ["Show its placement"]
    paste(at, "{")
    assert at.error
    checked(at.selectbox(key="own_type").set_value("bert").run())
    assert not at.error and "Post-LN" in words(at)


@pytest.mark.parametrize("ended", [None, Ended("", problem="its process was killed by signal 24")])
def test_an_inspection_that_was_stopped_says_what_to_do(
    ended: Ended[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Local, "events", lambda *_: iter(() if ended is None else (ended,)))
    with pytest.raises(client.NotInspected, match=r"fewer .* `normviz inspect config.json`"):
        client._result(LLAMA, Path())


def test_a_shared_server_takes_no_configuration(own, monkeypatch: pytest.MonkeyPatch) -> None:
    turn_on(monkeypatch)
    at = own(model_type="llama")
    assert not at.text_area and "`normviz inspect config.json`" in words(at)
    assert "LlamaForCausalLM" in words(at) and "For yours paste" not in words(at)
    assert "All sizes are the defaults" in words(at)


@pytest.mark.slow
def test_a_pasted_configuration_is_followed_in_another_process(own) -> None:
    at = own()
    paste(at, LLAMA)
    said = words(at)
    assert "LlamaForCausalLM" in said and "2 blocks of" in said and "per head" not in said
    assert "are the defaults" not in said
    assert "RMSNorm: eps 1e-06, gamma from 1" in said
    assert at.selectbox(key="own_type").value is None and "model_type" not in at.query_params
    checked(at.selectbox(key="own_type").select("bert").run(timeout=120))
    assert "BertLMHeadModel" in words(at) and "LlamaForCausalLM" not in words(at)


def test_what_is_no_configuration_is_a_sentence(own) -> None:
    at = own()
    for given, said in (
        ("{", "This is no JSON"),
        ("[1]", "JSON object"),
        (f'{{"model_type": "llama", "x": {"[" * 3000 + "]" * 3000}}}', "nested too deeply"),
        ('{"model_type": "llama", "num_hidden_layers": 100000}', "at most 1,000"),
        ('{"model_type": "llama", "hidden_size": 1e300}', "at most 16,777,216"),
    ):
        paste(at, given)
        assert said in "\n".join(error.value for error in at.error)
