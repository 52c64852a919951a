"""The tour: eleven steps, each with its duel, what to watch for, and its result. Torch-free.

The sentences contain no measured number; all numbers come from the runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from ..catalog.models import census
from ..config import RunConfig
from ..formats import loss, ratio, short
from ..runs import Recording
from .presets import PRESETS, Lanes

Runs = tuple[Recording, ...]


@dataclass(frozen=True)
class Question:
    """A question before the charts play. `answer` computes the right choice from the runs."""

    text: str
    choices: tuple[str, ...]
    answer: Callable[[Runs], int]


@dataclass(frozen=True)
class TourStep:
    """One step.

    look     what the charts show and where to look, without results; {1.depth} is lane B's depth
    result   the result; its {names} are filled with `numbers`, computed from the lanes' runs
    why      the reason in one sentence or two: from the formulas, measured, or with the name of who gives it
    holds    whether the runs agree with `result`, because other hardware may give another result
    at       the step at which the replay stops, because the text is about it; None: the last one
    tab      the charts that a phone shows first: the text is about them
    """

    key: str
    title: str
    lanes: Callable[[], Lanes]
    probe: str
    look: str
    result: str
    why: str
    numbers: Mapping[str, Callable[[Runs], str]]
    holds: Callable[[Runs], bool]
    question: Question | None = None
    sources: tuple[str, ...] = ()
    at: int | None = None
    tab: Literal["loss", "layers"] = "layers"

    def where(self) -> str:
        """The instructions, with the lanes' settings."""
        return self.look.format(*self.lanes())

    def caption(self, runs: Runs) -> str | None:
        """The result with the runs' own numbers; None if the runs disagree with it."""
        return self._filled(self.result, runs) if self.holds(runs) else None

    def reason(self, runs: Runs) -> str:
        """Why, with the runs' own numbers."""
        return self._filled(self.why, runs)

    def _filled(self, template: str, runs: Runs) -> str:
        numbers = {name: of(runs) for name, of in self.numbers.items()}
        return template.format(*(lane.config for lane in runs), **numbers)


# The eleven steps.

EVEN = 3.0
"""Gradients count as even if their ratio is below this."""

POST_RATE, PRE_RATE = 0.0045, 0.01
CLOSE = 0.1
"""Nats within which two held-out losses of one seed each do not say which is lower."""

EARLY = 30
"""A step at which the outcome is decided and layers are still recorded at every step."""


def no_norm_or_pre_ln() -> Lanes:
    """No norm at all against Pre-LN."""
    return PRESETS["no_norm"].lanes()[0], PRESETS["hero"].lanes()[0]


def warmup_by_depth() -> Lanes:
    """The warm-up duel, and its second lane with 24 blocks."""
    lanes = PRESETS["warmup"].lanes()
    return *lanes, lanes[1].replace(depth=24)


def post_ln_variants() -> Lanes:
    """Deep Post-LN, and three placements that change its branches, its skip paths, or both."""
    _, post, deepnorm = PRESETS["depth"].lanes()
    return post, post.replace(scheme="post_scaled"), post.replace(scheme="admin"), deepnorm


def each_at_its_rate() -> Lanes:
    """Post-LN and Pre-LN on prose, each at the rate that claim E7 chose for it on other seeds."""
    prose = RunConfig(
        task="prose_split", init="torch", depth=4, width=64, steps=600, warmup=60, schedule="linear"
    )
    return prose.replace(scheme="post", lr=POST_RATE), prose.replace(scheme="pre", lr=PRE_RATE)


def no_norm_by_depth() -> Lanes:
    """No norm with PyTorch's weights, the same with 32 blocks, and that with Pre-LN."""
    _, none = PRESETS["no_norm"].lanes()
    deep = none.replace(depth=32)
    return none, deep, deep.replace(scheme="pre")


def _which_block(runs: Runs) -> int:
    post = runs[1].last_over_first(EARLY)
    return 0 if post < 1 / EVEN else 1 if post > EVEN else 2


def _lowest(runs: Runs) -> int:
    finals = [lane.final for lane in runs]
    return finals.index(min(finals))


def _logit(recording: Recording) -> float:
    """The largest attention logit of any block at the last recorded step."""
    return max(
        recording.at("attn_logit_max", recording.last, layer)
        for layer in range(1, recording.depth + 1)
    )


def _recovered_share(runs: Runs) -> float:
    """How far C's loss is on the way from A's to B's, as a share."""
    pre, peri, qk = (lane.final for lane in runs)
    return (pre - qk) / (pre - peri)


def _peak(runs: Runs) -> int:
    """The early step at which Pre-LN's tokens are most alike."""
    return max(range(EARLY + 1), key=lambda step: runs[0].at("token_cosine", step, -1))


def _cosine(runs: Runs, lane: int, step: int) -> str:
    return f"{runs[lane].at('token_cosine', step, -1):.2f}"


def _moved(runs: Runs, lane: int) -> str:
    """By how much of their size the weights of the last block move at step 0, in percent."""
    return f"{100 * runs[lane].at('update_ratio', 0, -1):.2g} %"


def _stacks(*placements: str) -> str:
    return str(sum(model.placement in placements for model in census().models))


def _gap(runs: Runs) -> float:
    first, second = (lane.held_out or math.nan for lane in runs)
    return abs(first - second)


STEPS = (
    TourStep(
        "why",
        "Why normalise at all?",
        no_norm_or_pre_ln,
        "stream_rms",
        "Each token carries one vector up through the model, the *residual stream*. Every block "
        "adds to it. A *norm* brings a vector back to a fixed size. The points show how large the "
        "stream is after each block: look at step 0, before any training.",
        "Without a norm a block adds in proportion to its input: at step 0 the stream is "
        "{none} after the last block, against {pre} with Pre-LN. A {bad}. B learns: its loss "
        "falls to {loss}, where chance is {chance} and the lowest possible is {floor}.",
        "What a block adds is in proportion to what it reads, so each block multiplies the stream. A norm "
        "before the branch gives every block an input of the same size.",
        {
            "none": lambda runs: short(runs[0].at("stream_rms", 0, -1)),
            "pre": lambda runs: short(runs[1].at("stream_rms", 0, -1)),
            "bad": lambda runs: runs[0].verdict.sentence.partition(",")[0],
            "loss": lambda runs: loss(runs[1].final),
            "chance": lambda runs: loss(runs[1].chance),
            "floor": lambda runs: loss(runs[1].floor or math.nan),
        },
        lambda runs: (
            runs[0].verdict.kind == "diverged"
            and runs[1].has_learned
            and runs[0].at("stream_rms", 0, -1) > 10 * runs[1].at("stream_rms", 0, -1)
        ),
        sources=("Ba et al. 2016, arXiv:1607.06450",),
        at=0,
    ),
    TourStep(
        "places",
        "Two places for one norm",
        PRESETS["hero"].lanes,
        "stream_rms",
        "**Pre-LN** puts the norm before each branch: x + F(N(x)). The stream itself passes "
        "through no norm until its end. **Post-LN** puts the norm after the sum: N(x + F(x)). "
        "Every block resets the stream's size. A block has two branches, attention and a small network. "
        "All else is equal: data, seed, weights.",
        "At step 0 the stream of Pre-LN grows from {first} to {last} over {0.depth} blocks. Post-LN "
        "holds it at {post} in every block. Yet Post-LN is the one that does not learn here.",
        "A norm on the branch leaves the skip path as it is. A norm on the sum acts on the skip path too, "
        "forward and backward, once in every sublayer.",
        {
            "first": lambda runs: short(runs[0].at("stream_rms", 0, 0)),
            "last": lambda runs: short(runs[0].at("stream_rms", 0, -1)),
            "post": lambda runs: short(runs[1].at("stream_rms", 0, -1)),
        },
        lambda runs: (
            runs[0].at("stream_rms", 0, -1) > 2 * runs[0].at("stream_rms", 0, 0)
            and all(
                abs(runs[1].at("stream_rms", 0, b) - 1) < 0.02 for b in range(1, runs[1].depth + 1)
            )
            and runs[0].has_learned
            and runs[1].is_at_chance
        ),
        sources=("Vaswani et al. 2017, arXiv:1706.03762", "Xiong et al. 2020, arXiv:2002.04745"),
        at=0,
    ),
    TourStep(
        "cliff",
        "Guess the gradients",
        PRESETS["hero"].lanes,
        "grad_block",
        "The points are the gradient of each block: how strongly the loss asks that block to change. "
        "The scale is logarithmic. Watch the orange points while the lanes train.",
        "At step 0 Post-LN's blocks differ little: the last gets {start} the first one's gradient. "
        "After {early} steps it gets {cliff}. So training makes the cliff; it is not there "
        "from the start. In these {1.steps} steps Post-LN's loss stays at chance, {plateau}. Pre-LN "
        "reaches {loss}, and its first blocks get the larger gradients.",
        "On its way down a gradient passes two norms in each block of Post-LN, and their factors multiply. "
        "Pre-LN's skip path has no norm but the last. What training changes is in the next step.",
        {
            "start": lambda runs: ratio(runs[1].last_over_first(0)),
            "cliff": lambda runs: ratio(runs[1].last_over_first(EARLY)),
            "early": lambda runs: str(EARLY),
            "plateau": lambda runs: loss(runs[1].final),
            "loss": lambda runs: loss(runs[0].final),
        },
        lambda runs: (
            1 / EVEN < runs[1].last_over_first(0) < EVEN
            and runs[1].last_over_first(EARLY) > 100
            and runs[0].last_over_first(EARLY) < 1
            and runs[1].is_at_chance
            and runs[0].has_learned
        ),
        Question(
            f"After {EARLY} training steps of Post-LN: which block gets the larger gradient?",
            ("The first, at the input", "The last, at the output", "About the same"),
            _which_block,
        ),
        ("Xiong et al. 2020, arXiv:2002.04745", "Liu et al. 2020, arXiv:2004.08249"),
        at=EARLY,
    ),
    TourStep(
        "tokens",
        "What differs before the first step",
        PRESETS["hero"].lanes,
        "token_cosine",
        "*Token cosine* says how alike a sequence's tokens have become: at 1 a block can't tell "
        "them apart. The points show one minus it, so a low point is bad news. The charts go from step 0 "
        "to step 10: watch the last block, and click a step to compare.",
        "At step 0 the gradients are nearly even, but the tokens are already alike: cosine {post} after "
        "Post-LN's last block, {pre} after Pre-LN's. Ten steps later Post-LN is about {gap} from 1. Pre-LN "
        "rises too, to {peak} at step {when}, and falls back to {later} at step {early}.",
        "Attention among equal vectors can't prefer one, so its queries and keys get next to no gradient "
        "(Noci et al.).",
        {
            "post": lambda runs: _cosine(runs, 1, 0),
            "pre": lambda runs: _cosine(runs, 0, 0),
            "gap": lambda runs: short(1 - runs[1].at("token_cosine", 10, -1)),
            "peak": lambda runs: _cosine(runs, 0, _peak(runs)),
            "when": lambda runs: str(_peak(runs)),
            "later": lambda runs: _cosine(runs, 0, EARLY),
            "early": lambda runs: str(EARLY),
        },
        lambda runs: (
            runs[1].at("token_cosine", 0, -1) > 0.95
            and runs[0].at("token_cosine", 0, -1) < 0.8
            and 1 - runs[1].at("token_cosine", 10, -1) < 1e-4
            and runs[0].at("token_cosine", EARLY, -1) < runs[0].at("token_cosine", 0, -1)
        ),
        sources=("Dong et al. 2021, arXiv:2103.03404", "Noci et al. 2022, arXiv:2206.03126"),
        at=10,
    ),
    TourStep(
        "init",
        "Same placement, another start",
        PRESETS["init"].lanes,
        "token_cosine",
        "Both lanes are Post-LN. A starts as all lanes so far, from *Xavier* weights: random numbers from a "
        "range that a matrix's height and width set. B starts as PyTorch's own transformer layer does, with "
        "smaller weights in its branches.",
        "B learns: loss {loss}, where A stays at {plateau}. At step 0 its tokens are further apart: "
        "cosine {torch} after the last block, against {xavier}. So here it is not the placement "
        "alone.",
        "Smaller weights make a branch small beside the stream that it is added to, so a block mixes the "
        "tokens less.",
        {
            "loss": lambda runs: loss(runs[1].final),
            "plateau": lambda runs: loss(runs[0].final),
            "torch": lambda runs: _cosine(runs, 1, 0),
            "xavier": lambda runs: _cosine(runs, 0, 0),
        },
        lambda runs: (
            runs[0].is_at_chance
            and runs[1].has_learned
            and runs[1].at("token_cosine", 0, -1) < runs[0].at("token_cosine", 0, -1) - 0.2
        ),
        Question(
            "Will Post-LN with PyTorch's weights learn?",
            ("Yes, it learns", "No, it stays at chance as well"),
            lambda runs: 0 if runs[1].has_learned else 1,
        ),
        ("Xiong et al. 2020, arXiv:2002.04745",),
        at=0,
    ),
    TourStep(
        "warmup",
        "Warm-up helps in a band",
        warmup_by_depth,
        "token_cosine",
        "*Warm-up* starts with a tiny learning rate and raises it step by step. All three lanes "
        "are Post-LN with Xavier weights: A without warm-up, B with {1.warmup} steps of it, C "
        "like B but {2.depth} blocks deep. The points (on a phone under *Layers at this step*) show how "
        "alike the tokens are.",
        "With {0.depth} blocks warm-up decides: A ends at {plateau}, B at {loss}. With {2.depth} blocks "
        "the same warm-up does not help: C ends at {lost}, chance is {chance}. Warm-up "
        "helps Post-LN in a band of depths and rates, not everywhere.",
        "Adam's first updates are as large as the learning rate, whatever the gradient. At step 0 the last "
        "block's weights move by {jump} of their size without warm-up, by {eased} with it. Ten steps later "
        "the token cosine of A is within {alike} of 1. That of B is {apart}.",
        {
            "jump": lambda runs: _moved(runs, 0),
            "eased": lambda runs: _moved(runs, 1),
            "alike": lambda runs: short(1 - runs[0].at("token_cosine", 10, -1)),
            "apart": lambda runs: _cosine(runs, 1, 10),
            "plateau": lambda runs: loss(runs[0].final),
            "loss": lambda runs: loss(runs[1].final),
            "lost": lambda runs: loss(runs[2].final),
            "chance": lambda runs: loss(runs[2].chance),
        },
        lambda runs: (
            runs[0].is_at_chance
            and runs[1].has_learned
            and runs[2].is_at_chance
            and 1 - runs[0].at("token_cosine", 10, -1) < 1e-4
            and 1 - runs[1].at("token_cosine", 10, -1) > 1e-2
        ),
        sources=("Xiong et al. 2020, arXiv:2002.04745",),
        tab="loss",
    ),
    TourStep(
        "rate",
        "Turn up the learning rate",
        PRESETS["high_lr"].lanes,
        "attn_logit_max",
        "Three lanes at a learning rate of {0.lr:g}, far above the usual. Peri-LN has a norm before "
        "each branch and another after it. QK-norm normalises queries and keys inside "
        "attention. The points (on a phone under *Layers at this step*) are the largest attention "
        "logits.",
        "Peri-LN stays calm: loss {peri}. Pre-LN is only at {pre}, still falling; with QK-norm it gets to "
        "{qk}, a good part of the way. Pre-LN's logits end at {high}, with QK-norm at {low}. But Peri-LN's "
        "reach {calm} without harm: large logits accompany the failure but are not enough to cause it.",
        "A logit is the product of a query and a key, so it grows with the weights of both. QK-norm gives "
        "both a fixed size.",
        {
            "peri": lambda runs: loss(runs[1].final),
            "pre": lambda runs: loss(runs[0].final),
            "qk": lambda runs: loss(runs[2].final),
            "high": lambda runs: short(_logit(runs[0])),
            "low": lambda runs: short(_logit(runs[2])),
            "calm": lambda runs: short(_logit(runs[1])),
        },
        lambda runs: (
            runs[1].has_learned
            and runs[0].verdict.sentence.endswith("still falling")
            and runs[0].final > runs[1].final + 0.5
            and 0.5 < _recovered_share(runs) < 1
            and min(_logit(runs[0]), _logit(runs[1])) > 100 * _logit(runs[2])
        ),
        Question(
            "Which lane ends with the lowest loss?",
            ("A: Pre-LN", "B: Peri-LN", "C: Pre-LN with QK-norm"),
            _lowest,
        ),
        ("Kim et al. 2025, arXiv:2502.02732", "Wortsman et al. 2023, arXiv:2309.14322"),
        tab="loss",
    ),
    TourStep(
        "room",
        "No norm, second look",
        no_norm_by_depth,
        "stream_rms",
        "In the first step the model without a norm was lost. Lane A is that model with PyTorch's "
        "smaller weights. B is A with {1.depth} blocks. C is B with Pre-LN.",
        "A learns without any norm: loss {loss}. With {1.depth} blocks it does not: B {bad}. "
        "Pre-LN at that depth reaches {deep}. So a transformer can train without a norm; with "
        "one it trains at a greater depth here.",
        "Without a norm each block multiplies the stream. Smaller weights make the factor smaller, and "
        "{1.depth} blocks multiply more of them than {0.depth}.",
        {
            "loss": lambda runs: loss(runs[0].final),
            "bad": lambda runs: runs[1].verdict.sentence.partition(",")[0],
            "deep": lambda runs: loss(runs[2].final),
        },
        lambda runs: (
            runs[0].has_learned and runs[1].verdict.kind == "diverged" and runs[2].has_learned
        ),
        sources=(
            "Zhang et al. 2019, arXiv:1901.09321",
            "Bachlechner et al. 2020, arXiv:2003.04887",
        ),
        tab="loss",
    ),
    TourStep(
        "mend",
        "Three ways to mend Post-LN",
        post_ln_variants,
        "token_cosine",
        "All four lanes have {0.depth} blocks and their norm after the sum. A is Post-LN. B divides each "
        "branch by the square root of the number of branches. C is *Admin*: each skip path starts with "
        "a gain that grows with the depth below it. D is *DeepNorm*: larger skip paths and smaller "
        "weights. The points show how alike the tokens are.",
        "A ends at {plateau}, where chance is {chance}. B reaches {scaled}, C {admin} and D {deepnorm}. "
        "Before training the cosine of the tokens after the last block is {post} in A; in B, C and D it is "
        "{others}. What the three share: a branch changes the stream less.",
        "Liu et al. trace the trouble to branches that weigh much in the sum: each change of their weights "
        "then changes the output a lot.",
        {
            "plateau": lambda runs: loss(runs[0].final),
            "chance": lambda runs: loss(runs[0].chance),
            "scaled": lambda runs: loss(runs[1].final),
            "admin": lambda runs: loss(runs[2].final),
            "deepnorm": lambda runs: loss(runs[3].final),
            "post": lambda runs: _cosine(runs, 0, 0),
            "others": lambda runs: ", ".join(_cosine(runs, lane, 0) for lane in (1, 2, 3)),
        },
        lambda runs: (
            runs[0].is_at_chance
            and all(lane.has_learned for lane in runs[1:])
            and all(
                lane.at("token_cosine", 0, -1) < runs[0].at("token_cosine", 0, -1)
                for lane in runs[1:]
            )
        ),
        sources=(
            "Liu et al. 2020, arXiv:2004.08249",
            "Wang et al. 2022, arXiv:2203.00555",
        ),
    ),
    TourStep(
        "models",
        "What real models do",
        PRESETS["today"].lanes,
        "grad_block",
        "The lanes are three placements of today with what usually goes with them: RMSNorm, SwiGLU, "
        "RoPE and QK-norm. A is Pre-LN. B is Peri-LN, a norm before and after each branch. C is "
        "*Res-post-norm*, a norm on each branch alone. The points (on a phone under *Layers at this step*) "
        "are the gradient of each block.",
        "Here all three learn: {a}, {b} and {c}. In the code of a library of open models, {pre} of "
        "{all} stacks of blocks of language models are Pre-LN, {both} have a norm before and after each "
        "branch, {res} on each branch alone, and {post} are Post-LN. These are counts of code, not of models "
        "in use.",
        "All three lanes leave the skip path without a norm, so a gradient reaches the first block past "
        "none but the last.",
        {
            "a": lambda runs: loss(runs[0].final),
            "b": lambda runs: loss(runs[1].final),
            "c": lambda runs: loss(runs[2].final),
            "all": lambda _: str(len(census().models)),
            "pre": lambda _: _stacks("pre"),
            "both": lambda _: _stacks("peri", "sandwich"),
            "res": lambda _: _stacks("resp"),
            "post": lambda _: _stacks("post"),
        },
        lambda runs: (
            [lane.config.scheme for lane in runs] == ["pre", "peri", "resp"]
            and all(lane.has_learned for lane in runs)
        ),
        sources=("OLMo 2 2025, arXiv:2501.00656", "Gemma 2 2024, arXiv:2408.00118"),
        tab="loss",
    ),
    TourStep(
        "quality",
        "Which one ends lower?",
        each_at_its_rate,
        "branch_ratio",
        "Where both placements train, does the place of the norm decide the loss? A is Post-LN and B "
        "Pre-LN, with {0.depth} blocks on prose. Each has a warm-up and the learning rate that was best "
        "for it on other seeds: {0.lr:g} and {1.lr:g}. The lines with circles are the loss on a part of "
        "the text that training never reads; the names stand where the training losses end. The points "
        "(on a phone under *Layers at this step*) show how large each branch is beside the stream.",
        "On that part A ends at {post} and B at {pre}. That is one seed each, and seeds differ by more "
        "than this gap of {gap}. The claim *Post-LN ends better when tuned* asks eight seeds.",
        "Liu et al. expect more of Post-LN: in Pre-LN the stream grows, so that late branches weigh less "
        "and less in it. At the last step the branches of the last block are {even} times as large as "
        "the stream in A, and {late} times in B.",
        {
            "even": lambda runs: short(runs[0].at("branch_ratio", runs[0].last, -1)),
            "late": lambda runs: short(runs[1].at("branch_ratio", runs[1].last, -1)),
            "post": lambda runs: loss(runs[0].held_out or math.nan),
            "pre": lambda runs: loss(runs[1].held_out or math.nan),
            "gap": lambda runs: loss(_gap(runs)),
        },
        lambda runs: (
            [lane.config.scheme for lane in runs] == ["post", "pre"] and _gap(runs) < CLOSE
        ),
        sources=("Liu et al. 2020, arXiv:2004.08249, section 2",),
        tab="loss",
    ),
)


def numbered(word: str) -> int | None:
    """The number of a step, from 1, parsed from a query parameter; None if it is no step."""
    known = {str(n): n for n in range(1, len(STEPS) + 1)}
    return known.get(word)
