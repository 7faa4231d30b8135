"""Drift straight from safetensors files, against NumPy over all coordinates at once."""

import json

import numpy as np
import pytest
import torch
from analysis_models import SHAPES, save, weights

from broadreach.analysis import drift as module
from broadreach.analysis.drift import drift
from broadreach.analysis.drift_files import open_weights, stored_dtype
from broadreach.types import UserError


def flat(tensors: dict[str, np.ndarray]) -> np.ndarray:
    return np.concatenate([tensors[name].ravel() for name in sorted(tensors)]).astype(np.float64)


@pytest.fixture
def models() -> tuple[dict, dict, dict]:
    base = weights()
    generator = np.random.default_rng(1)
    turned = [
        {n: w + (generator.random(w.shape) < 0.7) * np.float32(1e-3) * k for n, w in base.items()} for k in (1, -2)
    ]
    return base, *turned


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_files_read_back_exactly_in_any_pieces(tmp_path, models, dtype):
    folder = save(tmp_path / "m", models[0], dtype, shards=3)
    found = open_weights(folder)
    assert list(found) == sorted(SHAPES)
    assert stored_dtype(found) == str(dtype).removeprefix("torch.")
    for name, tensor in found.items():
        expected = torch.from_numpy(models[0][name]).to(dtype).float().numpy()
        assert tensor.shape == expected.shape
        np.testing.assert_array_equal(tensor.read(3, tensor.size), expected.ravel()[3:])
        np.testing.assert_array_equal(tensor.blocks([5, 0], 4), np.stack([expected.ravel()[5:9], expected.ravel()[:4]]))


def test_streamed_drift_equals_numpy_whatever_the_pieces(tmp_path, models, monkeypatch):
    a, b, c = (save(tmp_path / name, m, torch.bfloat16, shards=2) for name, m in zip("abc", models, strict=True))
    base, other, third = (
        flat({n: torch.from_numpy(w).bfloat16().float().numpy() for n, w in m.items()}) for m in models
    )
    change, turn = other - base, third - base
    results = []
    for piece in (1 << 20, 1000, 77):
        monkeypatch.setattr(module, "PIECE", piece)
        found = drift(open_weights(a), open_weights(b), (1e-4, 1e-3, 2e-3), open_weights(c))
        results.append(found)
        assert found.total.relative == pytest.approx(np.linalg.norm(change) / np.linalg.norm(base), rel=1e-13)
        cosine = change @ turn / np.linalg.norm(change) / np.linalg.norm(turn)
        assert found.total.cosine == pytest.approx(cosine, rel=1e-12) and cosine < -0.5
        moved = np.abs(change) > 0
        for tau, share in zip(found.taus, found.total.sparsity, strict=True):
            assert share == (moved & (np.abs(change) <= tau)).sum() / moved.sum()
        assert [abs(place.change) for place in found.top] == np.sort(np.abs(change))[::-1][:100].tolist()
    assert results[0].top == results[1].top == results[2].top
    assert results[0].tensors[0].place == results[2].tensors[0].place
    assert (results[0].histogram == results[2].histogram).all()


def test_places_of_the_top_changes_hold_those_values(models):
    base, other, _ = models
    for place in drift(base, other).top:
        assert base[place.tensor][place.index] == np.float32(place.base)
        assert other[place.tensor][place.index] == np.float32(place.value)


def test_layers_and_kinds_add_up(models):
    found = drift(models[0], models[1])
    assert [part.name for part in found.layers] == ["layer 000", "layer 011", "outside"]
    for parts in (found.layers, found.kinds):
        assert sum(part.size for part in parts) == found.total.size
        assert sum(part.squared_change for part in parts) == pytest.approx(found.total.squared_change, rel=1e-14)


def test_a_tied_head_is_the_embedding_and_counts_once(tmp_path, models):
    base = models[0]
    tied = {**base, "lm_head.weight": base["model.embed_tokens.weight"].copy()}
    a = save(tmp_path / "a", base, torch.float32, config={"tie_word_embeddings": True})
    b = save(tmp_path / "b", tied, torch.float32, config={"tie_word_embeddings": True})
    assert drift(open_weights(a), open_weights(b)).total.relative == 0
    untied = save(tmp_path / "c", tied, torch.float32, config={"tie_word_embeddings": False})
    with pytest.raises(UserError, match=r"only the second model has lm_head\.weight"):
        drift(open_weights(a), open_weights(untied))


def test_what_cannot_be_compared_is_named(tmp_path, models):
    base = models[0]
    longer = {**base, "model.embed_tokens.weight": np.zeros((70, 24), np.float32)}
    with pytest.raises(UserError, match=r"model\.embed_tokens\.weight .* vocabularies of 64 and 70 tokens"):
        drift(base, longer)
    with pytest.raises(UserError, match=r"model\.norm\.weight .*not a finite"):
        drift(base, {**base, "model.norm.weight": np.full(24, np.nan, np.float32)})
    with pytest.raises(UserError, match=r"only the first model has model\.norm\.weight"):
        drift(base, {name: base[name] for name in base if name != "model.norm.weight"})
    with pytest.raises(UserError, match="third"):
        drift(base, base, third=longer)


def test_broken_directories_are_explained(tmp_path, models):
    sharded = save(tmp_path / "s", models[0], torch.float32, shards=2)
    (sharded / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(UserError, match="lacks the shard model-00002"):
        open_weights(sharded)
    cut = save(tmp_path / "cut", models[0], torch.float32)
    path = cut / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-64])
    with pytest.raises(UserError, match="cut short"):
        drift(open_weights(cut), models[0])
    path.write_bytes(b"no safetensors file")
    with pytest.raises(UserError, match="not a safetensors file"):
        open_weights(cut)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no tensors"):
        open_weights(tmp_path / "empty")
    header = json.dumps({"w": {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [0, 2]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"00")
    with pytest.raises(UserError, match="w is stored as F8_E4M3"):
        open_weights(cut)
