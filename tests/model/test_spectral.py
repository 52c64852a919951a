"""sigmaReparam's matrices beside torch's spectral_norm, and what they keep."""

from __future__ import annotations

import torch
from peek import begun
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm

from normviz import RunConfig
from normviz.model.branches import SpectralLinear

SMALL = RunConfig(depth=2, width=16, heads=2, seq_len=8, batch=4, scheme="sigma_reparam")


def pair(inputs: int, outputs: int) -> tuple[SpectralLinear, nn.Linear]:
    """Ours, and torch's linear map with spectral_norm whose singular vectors are exact at first."""
    torch.manual_seed(0)
    theirs = nn.Linear(inputs, outputs).double()
    ours = SpectralLinear(inputs, outputs).double()
    ours.load_state_dict({**theirs.state_dict(), "gamma": torch.ones(())})
    ours.gamma.data.fill_(1.5)
    return ours, spectral_norm(theirs, n_power_iterations=2000)


def test_it_is_gamma_times_torchs_spectral_norm() -> None:
    for sizes in ((16, 48), (16, 16), (64, 16)):
        ours, theirs = pair(*sizes)
        x = torch.randn(5, sizes[0], dtype=torch.float64)
        y = theirs(x) - theirs.bias
        z = ours(x) - ours.bias
        torch.testing.assert_close(z, 1.5 * y, rtol=1e-9, atol=1e-9)
        (1.5 * y).square().sum().backward()
        z.square().sum().backward()
        original = theirs.parametrizations.weight.original
        torch.testing.assert_close(ours.weight.grad, original.grad, rtol=1e-7, atol=1e-7)


def test_the_estimate_follows_a_matrix_that_moves_by_one_iteration_a_step() -> None:
    ours, _ = pair(16, 48)
    x, moved = torch.randn(5, 16, dtype=torch.float64), torch.randn(48, 16, dtype=torch.float64)
    ours(x)
    exact = []
    for _ in range(50):
        ours.weight.data.add_(moved, alpha=0.003)
        ours(x)
        u = ours.u
        assert u is not None
        exact.append(torch.linalg.matrix_norm(ours.weight, 2).item())
        assert 0.97 * exact[-1] <= ours.sigma().item() <= exact[-1] * (1 + 1e-12)
    assert exact[-1] > 1.2 * exact[0]
    before = ours.u
    ours.eval()
    ours(x)
    assert ours.u is before  # evaluation changes nothing that a later step reads


def test_a_new_model_has_matrices_of_norm_1_whatever_the_initialisation() -> None:
    for init in ("xavier", "gpt2"):
        model, tokens, _ = begun(SMALL.replace(init=init))
        model(tokens)
        maps = [m for m in model.modules() if isinstance(m, SpectralLinear)]
        assert len(maps) == 4 * SMALL.depth
        for m in maps:
            used = m.gamma / m.sigma() * m.weight
            torch.testing.assert_close(torch.linalg.matrix_norm(used, 2), m.gamma)
            assert m.gamma.item() == 1.0
