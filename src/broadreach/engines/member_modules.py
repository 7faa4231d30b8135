"""Stand-ins for a model's parametric modules whose weights have a member axis.

Rows come member by member, so an input [members * rows, ...] is seen as [members, rows, ...] and every member's rows
meet its own weights: batched matrix products for linear layers, shifted ids for embeddings, broadcasting for norms.
The rest of the Transformers model stays as it is.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.pytorch_utils import Conv1D

from broadreach.types import UserError

MemberWeights: TypeAlias = Mapping[str, Tensor]
"""Canonical name -> weights [members, *shape]."""


class MemberLinear(nn.Module):
    """`nn.Linear`, or Conv1D of GPT-2, whose weight lies the other way round."""

    def __init__(self, weight: str, bias: str | None, transposed: bool) -> None:
        super().__init__()
        self._weight_name, self._bias_name, self._transposed = weight, bias, transposed
        self.weight: Tensor = torch.empty(0)
        """[members, inputs, outputs], so that a product reads it in order."""
        self.bias: Tensor | None = None

    def bind(self, weights: MemberWeights) -> None:
        """Serve these members."""
        weight = weights[self._weight_name]
        self.weight = weight if self._transposed else weight.transpose(1, 2)
        self.bias = None if self._bias_name is None else weights[self._bias_name].unsqueeze(1)

    def forward(self, x: Tensor) -> Tensor:
        members, inputs, outputs = self.weight.shape
        rows = x.reshape(members, -1, inputs)
        product = torch.bmm(rows, self.weight) if self.bias is None else torch.baddbmm(self.bias, rows, self.weight)
        return product.view(*x.shape[:-1], outputs)


class MemberEmbedding(nn.Module):
    """An embedding, or a subclass of it that scales: its own forward over one table of all members."""

    def __init__(self, original: nn.Embedding, weight: str) -> None:
        super().__init__()
        self.original, self._name = original, weight
        self._offsets = torch.empty(0)

    def bind(self, weights: MemberWeights) -> None:
        """Serve these members."""
        table = weights[self._name]
        members, entries = table.shape[:2]
        _set(self.original, "weight", table.reshape(members * entries, -1))
        self._offsets = torch.arange(members).unsqueeze(1) * entries

    def forward(self, ids: Tensor) -> Tensor:
        shifted = ids.reshape(len(self._offsets), -1) + self._offsets
        return self.original(shifted.view(ids.shape))


class MemberNorm(nn.Module):
    """A module with vectors only (RMS norms of any flavour): its own forward, the vectors broadcast over rows."""

    def __init__(self, original: nn.Module, names: Mapping[str, str]) -> None:
        super().__init__()
        self.original, self._names = original, dict(names)
        self._members = 1

    def bind(self, weights: MemberWeights) -> None:
        """Serve these members."""
        for attribute, name in self._names.items():
            _set(self.original, attribute, weights[name].unsqueeze(1))
            self._members = len(weights[name])

    def forward(self, x: Tensor) -> Tensor:
        return self.original(x.reshape(self._members, -1, x.shape[-1])).view(x.shape)


class MemberTorchNorm(nn.Module):
    """`nn.LayerNorm` and `nn.RMSNorm`, whose kernels take no member axis: normalise, then scale and shift."""

    def __init__(self, original: nn.LayerNorm | nn.RMSNorm, weight: str | None, bias: str | None) -> None:
        super().__init__()
        self._shape, self._eps = original.normalized_shape, original.eps
        self._centred = isinstance(original, nn.LayerNorm)
        self._weight_name, self._bias_name = weight, bias
        self.weight: Tensor | None = None
        self.bias: Tensor | None = None

    def bind(self, weights: MemberWeights) -> None:
        """Serve these members."""
        self.weight = None if self._weight_name is None else weights[self._weight_name].unsqueeze(1)
        self.bias = None if self._bias_name is None else weights[self._bias_name].unsqueeze(1)

    def forward(self, x: Tensor) -> Tensor:
        if self._centred:
            normal = functional.layer_norm(x, self._shape, None, None, self._eps or 0.0)
        else:
            normal = functional.rms_norm(x, self._shape, None, self._eps)
        weight = torch.ones(1, 1, 1) if self.weight is None else self.weight
        rows = normal.reshape(weight.shape[0], -1, x.shape[-1])
        scaled = rows * weight if self.bias is None else torch.addcmul(self.bias, rows, weight)
        return scaled.view(x.shape)


MemberModule: TypeAlias = MemberLinear | MemberEmbedding | MemberNorm | MemberTorchNorm


def replace_modules(model: nn.Module) -> tuple[list[MemberModule], frozenset[str]]:
    """Put stand-ins in place of every module that owns parameters.

    Returns them, and the names of the weights that they want transposed ([members, inputs, outputs]). UserError naming
    the first module that cannot have a member axis.
    """
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    owners = [(path, module) for path, module in model.named_modules() if module._parameters]
    embedded = {id(module.weight) for _, module in owners if isinstance(module, nn.Embedding)}
    stand_ins: list[MemberModule] = []
    transposed: set[str] = set()
    for path, module in owners:
        found = {key: names[id(p)] for key, p in module._parameters.items() if p is not None}
        if not found:
            continue
        turned = type(module) is nn.Linear and id(module.weight) not in embedded
        stand_in = _stand_in(path, module, found, turned)
        if turned:
            transposed.add(found["weight"])
        stand_ins.append(stand_in)
        parent, _, attribute = path.rpartition(".")
        setattr(model.get_submodule(parent), attribute, stand_in)
    return stand_ins, frozenset(transposed)


def _stand_in(path: str, module: nn.Module, names: Mapping[str, str], turned: bool) -> MemberModule:
    if type(module) is nn.Linear:
        return MemberLinear(names["weight"], names.get("bias"), transposed=turned)
    if type(module) is Conv1D:
        return MemberLinear(names["weight"], names.get("bias"), transposed=True)
    if isinstance(module, nn.Embedding) and len(inspect.signature(module.forward).parameters) == 1:
        return MemberEmbedding(module, names["weight"])
    if type(module) in (nn.LayerNorm, nn.RMSNorm):
        return MemberTorchNorm(module, names.get("weight"), names.get("bias"))  # type: ignore[arg-type]
    vectors = all(p is None or p.ndim == 1 for p in module._parameters.values())
    if vectors and not list(module.children()) and _broadcasts(module):
        return MemberNorm(module, names)
    raise UserError(
        f"the population engine cannot serve {path or 'the model'} ({type(module).__name__}) for many members at once;"
        ' set engine.kind = "hf"'
    )


def _broadcasts(module: nn.Module) -> bool:
    """Whether the module computes the same for two members at once as for each alone, tried on fixed numbers."""
    originals = {key: p for key, p in module._parameters.items() if p is not None}
    size = next(iter(originals.values())).numel()
    if any(p.numel() != size for p in originals.values()):
        return False
    dtype = next(iter(originals.values())).dtype
    x = torch.sin(torch.arange(2 * 3 * size, dtype=torch.float32)).view(2, 3, size).to(dtype)
    trial = {
        key: torch.cos(torch.arange(2 * size, dtype=torch.float32) * (1 + i)).view(2, size).to(dtype)
        for i, key in enumerate(originals)
    }
    try:
        alone = torch.stack(
            [torch.func.functional_call(module, {k: v[m] for k, v in trial.items()}, (x[m],)) for m in range(2)]
        )
        together = torch.func.functional_call(module, {k: v.unsqueeze(1) for k, v in trial.items()}, (x,))
    except (RuntimeError, TypeError, ValueError, IndexError):
        return False
    return together.shape == alone.shape and torch.equal(together, alone)


def _set(module: nn.Module, attribute: str, value: Tensor) -> None:
    """Give a module a plain tensor where it had a parameter."""
    module._parameters.pop(attribute, None)
    setattr(module, attribute, value)
