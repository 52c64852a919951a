"""The guide's answers, read from the shipped files a second time by numpy and json alone."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from itertools import product
from statistics import fmean, median
from urllib.parse import parse_qs

import numpy as np
import pytest

from normviz.catalog import PROBES, SCHEMES
from normviz.catalog.models import LANGUAGE, TABLE
from normviz.config import RunConfig
from normviz.formats import listed
from normviz.home import shipped
from normviz.lessons.choose import confusions, facts, picks
from normviz.lessons.choose.answers import (
    DEEPER,
    GUESSES,
    MAP,
    MODERN,
    NAMES,
    Answers,
    as_params,
    decode,
    depths,
    map_of,
    measured_at,
    options,
)
from normviz.lessons.choose.confusions import CONFUSIONS
from normviz.lessons.choose.picks import guide, ordered, ranked
from normviz.lessons.choose.properties import (
    PROPERTIES,
    ROWS,
    claim_line,
    deepest,
    loss,
    norms_a_block,
    rates,
    reach,
    table,
)
from normviz.links import decode as decode_duel
from normviz.runs.shipped import cell_keys
from normviz.studies.claims import CLAIMS
from normviz.studies.claims.records.quality import EQUAL
from normviz.studies.claims.stored import shipped_result
from normviz.studies.maps.layout import maps
from normviz.studies.maps.link import decode as decode_map
from normviz.studies.maps.link import standard

MAPS = shipped("assets") / "maps"
Row = tuple[RunConfig, np.ndarray, np.ndarray, dict]


@cache
def raw(key: str) -> list[Row]:
    """Of each cell in a file its settings, losses, layers [m, probes, L+1], and what it says of itself."""
    found, at, layers_at = [], 0, 0
    with np.load(MAPS / f"{key}.npz") as data:
        scalars, layers = data["scalars"], data["layers"]
        about = json.loads(data["about"].tobytes())
        for one in about["runs"]:
            probes = one.get("probes", about["probes"])
            shape = (len(one["layer_steps"]), len(probes), one["config"]["depth"] + 1)
            own = layers[layers_at : layers_at + int(np.prod(shape))].reshape(shape)
            found.append((RunConfig(**one["config"]), scalars[0, at : at + one["steps"]], own, one))
            at, layers_at = at + one["steps"], layers_at + own.size
    return found


def capped(row: Row) -> float:
    _, losses, _, about = row
    if about["bad"]:
        return about["chance"]
    return min(float(losses[-(len(losses) // 10) :].mean()), about["chance"])


def by_rate(scheme: str, depth: int, key: str) -> dict[float, list[Row]]:
    rows = [row for row in raw(key) if (row[0].scheme, row[0].depth) == (scheme, depth)]
    return {
        lr: sorted((r for r in rows if r[0].lr == lr), key=lambda r: r[0].init_seed)
        for lr in sorted({row[0].lr for row in rows})
    }


SCHEMES_HERE = standard(MODERN).words["scheme"].split(",")


@pytest.mark.parametrize(
    ("scheme", "key", "depth"),
    [*((scheme, MODERN, 24) for scheme in SCHEMES_HERE), ("pre", "xavier", 16), ("post", "xavier", 8)],
)  # fmt: skip
def test_numbers_of_a_placement_are_those_of_the_file(scheme: str, key: str, depth: int) -> None:
    it, rows = facts.measured(key, scheme, depth=depth, warmup=0), by_rate(scheme, depth, key)
    assert it is not None
    assert list(it.rates) == list(rows)
    assert all(len(seeds) == 3 for seeds in it.rates.values())
    medians = {lr: median(map(capped, seeds)) for lr, seeds in rows.items()}
    about = rows[it.best][0][3]
    half = about["chance"] - (about["chance"] - about["floor"]) / 2
    assert it.trained == tuple(lr for lr, loss in medians.items() if loss <= half)
    compared = [lr for lr in medians if lr in GUESSES]
    assert medians[it.best] == min(medians[lr] for lr in compared)
    assert it.losses == pytest.approx([capped(row) for row in rows[it.best]], rel=1e-6)
    means = [fmean(capped(rows[lr][seed]) for lr in (0.003, 0.01)) for seed in range(3)]
    assert it.means((0.003, 0.01)) == pytest.approx(means, rel=1e-6)
    rms, grad = (PROBES.keys().index(name) for name in ("stream_rms", "grad_hidden"))
    layers = [row[2] for row in rows[it.best]]
    for end in (0, -1):
        assert it.rms(end).median == pytest.approx(median(one[end, rms, -1] for one in layers))
        gains = [one[end, grad, 0] / one[end, grad, -1] for one in layers]
        assert it.gain(end).median == pytest.approx(median(gains))


def test_all_depths_are_compared_with_one_norm_at_the_same_rates() -> None:
    """So no answer changes because one map goes on to higher rates, or has another norm."""
    rows = [*raw(MAP), *raw(DEEPER)]
    assert len({(row[0].norm, row[0].qk_norm, row[0].init) for row in rows}) == 1
    assert {24, 96} <= {*depths()} == {row[0].depth for row in rows}
    for depth in depths():
        assert set(GUESSES) <= {row[0].lr for row in rows if row[0].depth == depth}
    for answers in default_answers():
        it = ranked(answers)
        assert {*it.rates, *(one.best for one in it.tied)} <= set(GUESSES)


def test_the_rates_that_are_compared_lie_around_the_best_ones() -> None:
    """About three times lower and higher than every best rate of the whole map, so no end of it decides."""
    best = {
        min(settled, key=lambda lr: median(s.point.capped for s in it.rates[lr]))
        for depth in depths()
        for scheme in standard(MAP).words["scheme"].split(",")
        if (it := facts.measured(map_of(depth), scheme, depth=depth, warmup=0))
        if (settled := [lr for lr, mark in it.marks.items() if mark == "trained and settled"])
        and len(settled) > 1
    }
    assert (min(best), max(best)) == (GUESSES[1], GUESSES[-2])
    assert min(best) / GUESSES[0] >= 3 and GUESSES[-1] / max(best) >= 3


def default_answers() -> list[Answers]:
    return [Answers(depth=str(d), tuned=t) for d, t in product(depths(), ("no", "yes"))]


def test_a_rate_has_the_mark_that_the_map_gives_its_cell() -> None:
    """0.1 was a tick here and a triangle there."""
    seen = set()
    for key in (MAP, DEEPER, MODERN):
        asked = standard(key)
        points = [one.point for one in facts.cells(key)]
        shown = maps(asked.grid, points, (asked.across, asked.up))
        drawn = {cell.key: cell.mark for one in shown for cell in one.cells}
        scheme, depth = asked.grid.axis("scheme"), asked.grid.axis("depth")
        assert scheme is not None
        for one, blocks in product(scheme.values, depth.values if depth else (24,)):
            it = facts.measured(key, one, depth=blocks, warmup=0)
            assert it is not None
            for lr, mark in it.marks.items():
                (there,) = {drawn[s.config.key] for s in it.rates[lr] if s.config.key in drawn}
                assert (mark == "still falling") == (there == "falling")
                assert there in ("", "falling") or mark == "did not train"
                seen.add(mark)
        for point in points:  # and what the duel says of its run
            assert point.falling == ("still falling" in point.sentence)
    assert seen >= {"trained and settled", "did not train", "still falling"}
    pre = facts.measured(MODERN, "pre", warmup=0)
    assert pre is not None and pre.marks[0.1] == pre.marks[0.3] == "still falling"
    assert rates(pre).text == (
        "trained and settled at 4 of 6 rates from 0.001 to 0.3; still falling at 0.1, 0.3"
    )


def test_the_jump_at_24_blocks_is_gone() -> None:
    """The mean over rates up to 0.3 put Pre-LN 0.33 nats above Peri-LN there, and at no other depth."""
    tied = {one.scheme for one in ordered(MODERN, 24, is_tuned=False).tied}
    assert {"pre", "peri"} <= tied
    assert {"pre", "peri"} <= {one.scheme for one in ranked(Answers(depth="16")).tied}


def test_what_still_fell_or_has_not_settled_is_no_deficit() -> None:
    """Each number of the order is of runs that settled."""
    for answers in default_answers():
        it = ranked(answers)
        for one in it.tied:
            for lr in it.rates or (one.best,):
                points = [seed.point for seed in one.rates[lr]]
                assert 2 * sum(p.falling for p in points) <= len(points)
                assert 2 * sum(p.kind == "not settled" for p in points) <= len(points)
    cell = facts.measured("xavier", "post", depth=8, warmup=0)
    assert cell is not None and cell.marks[0.0001] in ("still falling", "not settled")


def says(answer: picks.Guide, names: list[str], unclear: list[str]) -> None:
    """Headline, cards and reasons of placements without a difference, and of those not told apart."""
    more = f"; not told apart by these seeds: {listed(unclear)}" if unclear else ""
    words = f"No difference in training loss measured at this size: {listed(names)}{more}"
    assert answer.headline == words
    assert [pick.label for pick in answer.picks] == names + unclear
    for pick in answer.picks:
        assert ("no difference measured from" in pick.reason) == (pick.label in names)
        assert ("not told apart" in pick.reason) == (pick.label in unclear)
    assert ("Not told apart: the interval" in answer.why) == bool(unclear)


def test_no_difference_is_a_small_one_and_what_the_seeds_do_not_tell_apart_is_said() -> None:
    """Read from the files a second time: of each tied placement the mean lies below the claims' size above
    the lowest; of the unclear ones the paired differences hold zero in their interval; of the others
    neither, or it fails."""
    for answers in default_answers():
        it = ranked(answers)
        depth = measured_at(answers)
        key = map_of(depth)
        cells = {one.scheme: by_rate(one.scheme, depth, key) for one in (*it.tied, *it.behind)}

        def end(one: facts.Measured, over: tuple[float, ...], cells=cells) -> np.ndarray:
            rows = cells[one.scheme]
            if not over:
                able = one.compared("trained and settled")
                over = (min(able, key=lambda lr: median(map(capped, rows[lr]))),)
            return np.mean([[capped(row) for row in rows[lr]] for lr in over], axis=0)

        ends = {one: end(one, it.rates) for one in it.tied}
        lowest = min(ends.values(), key=np.mean)

        assert EQUAL == 0.02 and max(map(np.mean, ends.values())) < lowest.mean() + EQUAL
        answer = guide(answers)
        if len(ends) == 1:  # DeepNorm ends lower with 96 blocks, each at its best rate
            assert (depth, answers.tuned, answer.headline) == (
                96, "yes", "Lowest loss at this size: DeepNorm",
            )  # fmt: skip
            continue
        names = [SCHEMES.label(one.scheme) for one in it.tied]
        says(answer, names, [SCHEMES.label(one.scheme) for one in it.unclear])
        for one, losses in ends.items():
            half = 4.303 * losses.std(ddof=1) / len(losses) ** 0.5
            low, high = losses.mean() - half, losses.mean() + half
            mean = f"{losses.mean():.3f} ({low:.3f} to {high:.3f})"
            assert f"{SCHEMES.label(one.scheme)} {mean}" in answer.why
            assert "That limit is this page's own; claims have theirs, some 0.005." in answer.why
            (pick,) = (pick for pick in answer.picks if pick.scheme == one.scheme)
            if it.rates:
                assert f"mean loss {mean} nats, in brackets a 95 % interval" in pick.reason
            found = dict(pick.lines)["Loss"]
            assert found is not None
            assert ("(seeds " in found.text) == ("(" in found.text)  # a range of seeds, no interval
        fails = len(it.tied[0].compared("did not train"))
        for one, lack in it.behind.items():
            if "nats above" in lack:
                apart = end(one, it.rates) - lowest
                half = 4.303 * apart.std(ddof=1) / len(apart) ** 0.5
                assert apart.mean() >= EQUAL and (apart.mean() <= half) == (one in it.unclear)
            elif one.compared("trained and settled"):
                assert answers.tuned == "no" and len(one.compared("did not train")) > fails
            assert SCHEMES.label(one.scheme) in answer.others


def test_a_placement_is_named_alone_only_where_all_others_are_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a size that no two losses are within."""
    monkeypatch.setattr(picks, "EQUAL", 1e-9)
    close, apart = (Answers(depth=depth, tuned="yes") for depth in ("16", "64"))
    found = guide(close).headline
    assert (
        found
        == "Lowest loss at this size: DeepNorm; not told apart by these seeds: Pre-LN and Peri-LN"
    )
    assert guide(apart).headline == "Lowest loss at this size: DeepNorm"
    assert "Pre-LN: 0.019 (" in guide(apart).others


def test_deeper_than_was_measured_the_headline_says_at_what_depth() -> None:
    assert (
        guide(Answers(depth="more", tuned="yes")).headline == "Lowest loss at 96 blocks: DeepNorm"
    )


def test_what_tied_placements_differ_in_at_higher_rates_is_said_where_it_was_measured() -> None:
    said = guide(Answers(depth="16", tuned="yes")).differs
    assert "trained and settled at 0.03" in said and "DeepNorm did not train at 0.03" in said
    assert guide(Answers(depth="4")).differs == (  # Pre-LN still fell at 0.1, which says nothing
        "Above their best rates they differ: Peri-LN trained and settled at 0.1; DeepNorm did not train at "
        "0.1."
    )
    assert guide(Answers(depth="24")).differs == ""
    scratch = guide(Answers()).headline
    assert guide(Answers(start="existing")).differs == (
        f"Trained from scratch: {scratch[0].lower()}{scratch[1:]}."
    )


def test_the_scope_is_that_of_the_runs() -> None:
    for answers in default_answers():
        depth = measured_at(answers)
        (settings,) = {
            (row[0].width, row[0].steps, row[0].norm, row[0].qk_norm, row[0].init)
            for row in raw(map_of(depth))
            if row[0].depth == depth
        }
        width, steps, *norms = settings
        assert norms == ["layernorm", "off", "xavier"]
        said = guide(answers).scope
        for part in (
            "Toy models only", f"{depth} blocks of width {width}, Markov chain, LayerNorm, no QK-norm",
            "Xavier initialisation", f"{steps} steps without warm-up", "3 seeds",
            "rates 0.001, 0.003, 0.01 and 0.03",
            "training loss", "Large models were not measured",
        ):  # fmt: skip
            assert part in said
        assert any(
            "carry a rate over to another size was not measured" in x for x in guide(answers).limits
        )
    assert (
        "More than 96 blocks: not measured. This is for 96." in guide(Answers(depth="more")).limits
    )
    of_llama = guide(Answers(start="existing", model="llama")).limits
    assert any(
        "llama has RMSNorm; its numbers here are of models with LayerNorm" in x for x in of_llama
    )


def test_the_answer_with_rmsnorm_and_qk_norm_names_its_own_settings_and_not_the_guide_s() -> None:
    """It said of Post-LN that it trains at no rate, under a headline of LayerNorm; that is with Xavier."""
    said = CONFUSIONS["modern"].answer.text
    among = listed([SCHEMES.label(one.scheme) for one in ordered(MODERN, 24, is_tuned=True).tied])
    assert said.startswith(
        "Yes, for whether it trains: Post-LN trained at none of 6 rates from 0.001 to 0.3; between "
        f"{among}, each at its best rate, no difference in loss was measured."
    )
    assert f"That is with {facts.setting(MODERN, 24)}. No other initialisation was tried" in said
    assert {row[0].init for row in raw(MODERN)} == {"xavier"}
    assert (
        "RMSNorm, QK-norm per head, Xavier initialisation, 150 steps without warm-up, 3 seeds"
        in said
    )
    assert "LayerNorm, no QK-norm, PyTorch initialisation" in said
    assert f"Post-LN trains with up to {deepest('torch', 'post')} blocks" in said


def test_what_is_read_from_a_map_of_its_own_names_the_settings_of_that_map() -> None:
    """Three limits of Post-LN with Xavier stood beside each other, each of other settings."""
    cells = table()["post"]
    for column, key in (("warmup", "warmup"), ("depth", MAP), ("init", "init")):
        found = cells[column].measured
        assert found is not None and facts.conditions(key, init=column == "warmup") in found.text
    assert (
        "0.003" in cells["init"].measured.text and "(7 rates from" in cells["depth"].measured.text
    )
    assert "400 steps" in facts.conditions("warmup") and "without" not in facts.conditions("warmup")


def every_answer() -> list[Answers]:
    """All answers of a model from scratch, and every model of the census."""
    names = NAMES[:-1]
    found = [
        Answers(**dict(zip(names, keys, strict=True)))
        for keys in product(*(options(name).keys() for name in names))
    ]
    return found + [Answers(start="existing", model=one.key) for one in options("model")]


def test_every_answer_has_placements_and_a_duel_that_is_stored() -> None:
    for answers in every_answer()[::40]:
        it = guide(answers)
        assert 1 <= len(it.picks) <= 5 and it.headline and it.why
        assert len({pick.scheme for pick in it.picks}) == len(it.picks)
        if it.duel:
            lanes = decode_duel(it.duel).lanes
            assert [lane.scheme for lane in lanes] == [p.scheme for p in it.picks if p.measured][:4]
            assert len({lane.replace(scheme="pre") for lane in lanes}) == 1
            assert {lane.key for lane in lanes} <= cell_keys()


def test_a_model_keeps_its_own_placement() -> None:
    rows = {row["model"]: row for row in json.loads(TABLE.read_text())["models"]}
    for model, placement in (("bert", "post"), ("olmo2", "resp"), ("llama", "pre")):
        assert rows[model]["placement"] == placement
        first, *_ = guide(Answers(start="existing", model=model)).picks
        assert first.scheme == placement and model in first.reason


def test_what_was_not_measured_is_none() -> None:
    first, *others = guide(Answers(start="existing", model="olmo2", depth="64")).picks
    lines = dict(first.lines)
    assert first.scheme == "resp"
    assert lines["Loss"] is lines["Rates"] is lines["Stream"] is None
    assert first.marks == () and others
    cells = table()
    assert cells["resp"]["depth"].measured is None
    assert cells["deepnorm"]["init"].measured is None


def test_precision_changes_nothing_but_what_is_said() -> None:
    """No run has another precision than fp32."""
    found = {one.key: guide(Answers(precision=one.key)) for one in options("precision")}
    assert len({tuple(pick.scheme for pick in it.picks) for it in found.values()}) == 1
    said = {
        key: any("Precision was not measured" in c for c in it.limits) for key, it in found.items()
    }
    assert said == {"fp32": False, "bf16": True, "fp16": True, "fp8": True}


def test_users_are_counted_in_the_census() -> None:
    every = json.loads(TABLE.read_text())["models"]
    models = [model for model in every if model["kind"] in LANGUAGE]
    assert len(models) < len(every)
    for scheme in ROWS:
        n = sum(model.get("placement") == scheme for model in models)
        text = table()[scheme]["users"].measured
        assert text is not None and text.text.startswith(f"{n} of {len(models)} stacks")
    assert facts.same_blocks("peri") == ("sandwich",)
    assert facts.same_blocks("post") == ()


def test_the_deepest_stack_is_that_of_the_files() -> None:
    for key, scheme in (("torch", "post"), ("xavier", "post"), ("xavier", "deepnorm")):
        good = [
            depth
            for depth in (2, 4, 8, 16, 24, 32, 64, 96)
            for name in ((key, DEEPER) if key == MAP else (key,))
            for seeds in by_rate(scheme, depth, name).values()
            if median(map(capped, seeds))
            <= (seeds[0][3]["chance"] + seeds[0][3]["floor"]) / 2
        ]  # fmt: skip
        assert deepest(key, scheme) == max(good)
    assert deepest("torch", "resp") is None


def test_the_rates_of_each_depth_are_those_of_the_files() -> None:
    """Those of 8 blocks were said of 96, at which fewer were run; and where it only lacked steps was not."""
    ran: dict[tuple[float, ...], list[str]] = {}
    for depth in sorted({row[0].depth for row in (*raw(MAP), *raw(DEEPER))}):
        key = MAP if depth in depths(MAP) else DEEPER
        ran.setdefault(tuple(by_rate("post", depth, key)), []).append(str(depth))
    assert len(ran) == 2
    said = "; ".join(
        f"{listed(blocks)} blocks: {len(at)} rates from {at[0]:g} to {at[-1]:g}"
        for at, blocks in ran.items()
    )
    assert reach(MAP, "post") == (
        f"up to 8 of 96 blocks ({said}), still falling with 32 and 64 blocks at 0.0001"
    )
    assert (
        reach("torch", "pre") == "up to 64 blocks, the deepest tried (7 rates from 0.0001 to 0.1)"
    )


def test_a_loss_at_chance_is_no_loss_at_a_best_rate() -> None:
    for key, schemes in ((MODERN, SCHEMES_HERE), (MAP, ("post", "pre", "none"))):
        for scheme, depth in product(schemes, (24,) if key == MODERN else depths(key)):
            it = facts.measured(key, scheme, depth=depth, warmup=0)
            assert it is not None
            said = loss(it).text
            assert ("at its best rate" in said) == bool(it.trained)
            assert said.startswith(f"trained at none of {len(it.rates)} rates") == (not it.trained)
    post = facts.measured(MODERN, "post", warmup=0)
    assert post is not None and "3.32 nats at the lowest, chance 3.32" in loss(post).text


def test_several_equals_leave_the_choice_free_and_are_told_apart_by_their_norms() -> None:
    for answers in default_answers():
        it, said = ranked(answers), guide(answers).choice
        tied = [one.scheme for one in it.tied]
        norms = [norms_a_block(scheme) for scheme in tied]
        assert bool(said) == (len(tied) > 1)
        if not said:
            continue
        between = listed([SCHEMES.label(scheme) for scheme in tied]) if it.unclear else "them"
        assert said.startswith(f"These losses leave the choice between {between} free")
        fewest = [SCHEMES.label(s) for s, n in zip(tied, norms, strict=True) if n == min(norms)]
        assert ("each has" in said) == (len(fewest) == len(tied))
        assert ("each has" in said) != (f"; {listed(fewest)} ha" in said)
    assert guide(Answers(start="existing")).choice == ""


@pytest.mark.parametrize(
    ("scheme", "norms"), [("pre", 2), ("post", 2), ("peri", 4), ("parallel", 1), ("none", 0)]
)
def test_norms_of_a_block(scheme: str, norms: int) -> None:
    assert norms_a_block(scheme) == norms


def test_claims_are_about_the_placement_of_their_row() -> None:
    for one in PROPERTIES:
        for scheme, keys in one.claims.items():
            assert scheme in ROWS
            for key in keys:
                named = {
                    word for arm in CLAIMS[key].settings().values()
                    for word in arm.get("scheme", "pre").split(",")
                }  # fmt: skip
                assert scheme in named, (one.key, scheme, key)


def addresses() -> list[str]:
    picks = [pick for answers in (Answers(), Answers(depth="8")) for pick in guide(answers).picks]
    found = [line.to for pick in picks for _, line in pick.lines if line]
    found += [line.to for pick in picks for line in pick.claims]
    for row in table().values():
        found += [cell.measured.to for cell in row.values() if cell.measured]
    for one in CONFUSIONS:
        found += [line.to for line in one.lines] + [line.to for line in one.findings]
    return found


def test_every_link_leads_to_what_there_is() -> None:
    for address in dict.fromkeys(addresses()):
        page, _, query = address.partition("?")
        if page == "maps":
            key = decode_map(parse_qs(query)).standard
            assert key is not None
        elif page == "claims":
            assert query.removeprefix("claim=") in CLAIMS
        elif page == "./":
            link = decode_duel(query)
            assert link.lanes and not link.problems and not link.notices
        else:
            assert page in ("catalogue", "cost") and not query


def test_the_gradient_of_the_unrolled_stream_is_that_of_the_shipped_runs() -> None:
    said = [found.text for found in CONFUSIONS["unrolled"].findings]
    assert len(said) == 2
    for text, name in zip(said, ("hero-1-pre", "hero-2-post"), strict=True):
        with np.load(shipped("assets") / "runs" / f"{name}.npz") as data:
            grad = data["layers"][:, PROBES.keys().index("grad_hidden")]
            steps = data["layer_steps"].tolist()
        for step in (0, 31, 199):
            gain = grad[steps.index(step), 0] / grad[steps.index(step), -1]
            assert f"{gain:.2g} at step {step}" in text
    for text in said:
        assert any(f"{part} at step 0" in text for part in ("3.9", "0.86"))
    one = CONFUSIONS["unrolled"]
    assert any("sum" in latex for _, latex in one.formulas())
    written = " ".join(latex for _, latex in one.formulas())
    for symbol, told in (
        (r"\mathrm{LN}", r"$\mathrm{LN}$ the norm"), ("J_l", "$J_l = "), ("J_{F}", "$J_F$ the branch's"),
        (r"J_{\mathrm{N}}", r"$J_{\mathrm{N}}$ the norm's"), ("2L", "$L$ blocks of two sublayers"),
    ):  # fmt: skip
        assert symbol in written and told in one.symbols


def test_every_question_has_an_answer() -> None:
    for one in CONFUSIONS:
        assert one.lines or one.findings
        assert all(line.verdict != "not run" and line.explained for line in one.lines)
        assert one.answer.text and one.answer.to


def test_an_answer_begins_with_a_plain_word_that_the_results_give(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = {one.key: one.answer.text for one in CONFUSIONS}
    assert said["post"].startswith(
        "No, it trains here. PyTorch initialisation: up to 32 of 64 blocks (7 rates from 0.0001 to 0.1)"
    )
    assert "Xavier initialisation: up to 8 of 96 blocks (2, " in said["post"]
    assert said["warmup"] == (
        "No: without one, 10 blocks of Pre-LN train at 4 of 4 rates from 0.0003 to 0.01 (LayerNorm, no "
        "QK-norm, Xavier initialisation, 400 steps, 3 seeds)."
    )
    assert said["speed"].startswith("No. In a whole training step RMSNorm (library) takes 1.03")
    assert said["users"].startswith("No: 136 of 226 stacks")
    assert said["none"].startswith("Only in shallow models: ")
    assert "without a norm up to 4 of 96 blocks (" in said["none"]
    assert ", still falling with 8 blocks at 0.0001, 0.0003 and 0.001; with" in said["none"]
    assert said["early"].startswith("Early in Pre-LN") and "; late in Post-LN" in said["early"]
    assert "and which trained at none of 7 rates from 0.0001 to 0.1." in said["early"]
    assert said["carry"].startswith("Not measured for width, steps or data")
    assert said["placement"].startswith("No: RMSNorm is a norm, which says what is computed")
    for key, claim in (("equal", "C3"), ("qk", "C14"), ("final", "C20"), ("batchnorm", "E21")):
        line = claim_line(claim)
        word, _, rest = said[key].partition(". ")
        assert rest == line.finding
        found = shipped_result(CLAIMS[claim])
        assert found is not None
        expected = confusions.KINDS[found.verdict(CLAIMS[claim]).kind]
        assert key in ("final", "batchnorm") or word == expected
    # Another verdict has another word.
    result = shipped_result(CLAIMS["C3"])
    assert result is not None
    worse = replace(result, numbers={name: [1.0] * 20 for name in result.numbers})
    monkeypatch.setattr(confusions, "shipped_result", lambda _: worse)
    assert not CONFUSIONS["equal"].answer.text.startswith("No.")


def test_rmsnorm_stands_in_several_placements_of_the_census() -> None:
    every = json.loads(TABLE.read_text())["models"]
    at = [
        one["placement"]
        for one in every
        if one["kind"] in LANGUAGE and one.get("norm") == "rmsnorm" and one.get("placement")
    ]
    text = CONFUSIONS["placement"].answer.text
    assert f"RMSNorm stands in {len(set(at))} placements" in text
    assert f"Pre-LN ({at.count('pre')})" in text


def test_answers_come_back_from_their_link() -> None:
    for answers in every_answer()[::40]:
        params = {name: [word] for name, word in as_params(answers).items()}
        back, notices = decode(params)
        assert as_params(back) == as_params(answers) and not notices


@pytest.mark.parametrize(
    ("params", "said"),
    [
        (
            {"depth": ["7"]},
            "The link gives depth '7', allowed is 2, 4, 8, 16, 24, 32, 64, 96, more",
        ),
        ({"model": ["nobody"]}, "allowed is a model of the census"),
        ({"tuned": ["yes", "no"]}, "The link gives tuned 2 times, allowed is once"),
        ({"colour": ["red"]}, "The link also names 'colour'"),
    ],
)
def test_what_of_a_link_is_not_used_is_said(params: dict[str, list[str]], said: str) -> None:
    answers, notices = decode(params)
    assert any(said in notice for notice in notices)
    assert answers.depth == "16"
