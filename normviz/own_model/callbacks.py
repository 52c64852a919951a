"""Callbacks that watch a model in the training loops of others: Hugging Face's Trainer and Lightning."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from .library import library
from .watch import Watch

if TYPE_CHECKING:
    Trainer = Lightning = object
else:
    Trainer = library().TrainerCallback if find_spec("transformers") else object
    if find_spec("lightning"):
        from lightning.pytorch import Callback as Lightning
    elif find_spec("pytorch_lightning"):
        from pytorch_lightning import Callback as Lightning
    else:
        Lightning = object


class Callback(Trainer):
    """`Trainer(callbacks=[normviz.Callback()])` for transformers; the options are those of `normviz.watch`.

    `watch` is the run's `Watch` once training has begun.
    """

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.watch: Watch | None = None

    def on_train_begin(
        self,
        args: Any,
        state: Any,
        control: Any,
        model: Any = None,
        optimizer: Any = None,
        **more: Any,
    ) -> None:
        """Begin to watch."""
        self.watch = Watch(model, optimizer, **self.options)

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """End the run."""
        if self.watch is not None:
            self.watch.close()


class LightningCallback(Lightning):
    """`Trainer(callbacks=[normviz.LightningCallback()])` for Lightning."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.watch: Watch | None = None

    def on_train_start(self, trainer: Any, module: Any) -> None:
        """Begin to watch."""
        own: dict[str, Any] = {"scaler": getattr(trainer.precision_plugin, "scaler", None)}
        self.watch = Watch(module, list(trainer.optimizers), **(own | self.options))

    def on_before_backward(self, trainer: Any, module: Any, loss: Any) -> None:
        """Take the loss, which Lightning has divided by the number of accumulated batches."""
        if self.watch is not None:
            parts = trainer.accumulate_grad_batches
            self.watch._tell(loss * parts, 1 / parts)

    def on_train_end(self, trainer: Any, module: Any) -> None:
        """End the run."""
        if self.watch is not None:
            self.watch.close()

    def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
        """End a run that was broken off."""
        if self.watch is not None:
            self.watch.close("stopped")
