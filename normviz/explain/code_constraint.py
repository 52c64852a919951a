"""Weight constraints of a pasted model, at initialisation and after every optimizer step."""

from __future__ import annotations

CONSTRAINTS: dict[str, tuple[list[str], list[str]]] = {
    "none": ([], []),
    "unit_vectors": (
        ["        self.constrain()"],
        [
            "    @torch.no_grad()",
            "    def constrain(self):",
            '        """Call this after every step of the optimizer."""',
            "        for name, p in self.named_parameters():",
            "            if p.ndim == 2:  # vectors in the stream's space get the length 1",
            '                axis = 0 if name.endswith(("out.weight", "down.weight")) else 1',
            "                p.div_(p.norm(dim=axis, keepdim=True))",
            "",
        ],
    ),
}
"""For each constraint (`catalog.constraints`): lines of the model's __init__, and its method."""
