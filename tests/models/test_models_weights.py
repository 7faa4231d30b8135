"""Weights go in and out of Hugging Face directories without losing a bit."""

import json
import shutil

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from broadreach.models.distance import l2_norm, relative_l2
from broadreach.models.kinds import tensor_kind
from broadreach.models.locate import locate
from broadreach.models.stream import stream_centre
from broadreach.models.weights import export, load_centre, load_tokenizer, model_context_length, parameter_count
from broadreach.noise.update import digest
from broadreach.types import UserError


@pytest.fixture
def nano(tmp_path):
    return shutil.copytree(locate("nano"), tmp_path / "model")


def test_the_centre_holds_every_parameter_once(nano):
    centre = load_centre(nano)
    model = AutoModelForCausalLM.from_pretrained(nano)
    assert parameter_count(centre) == sum(p.numel() for p in model.parameters())
    assert list(centre) == sorted(centre) and all(a.dtype == np.float32 for a in centre.values())


def test_export_in_float32_is_exact(nano, tmp_path):
    centre = load_centre(nano)
    for array in centre.values():
        array += np.float32(1e-7) * np.arange(array.size, dtype=np.float32).reshape(array.shape)
    export(centre, nano, tmp_path / "out", "float32")
    assert digest(load_centre(tmp_path / "out")) == digest(centre)
    assert load_tokenizer(tmp_path / "out").chat_template


def test_export_in_bfloat16_is_the_cast(nano, tmp_path):
    centre = load_centre(nano)
    export(centre, nano, tmp_path / "out", "bfloat16")
    written = load_centre(tmp_path / "out")
    for name, array in centre.items():
        assert (torch.from_numpy(array).bfloat16().float().numpy() == written[name]).all()


def test_export_refuses_to_overwrite(nano):
    with pytest.raises(UserError, match="already exists"):
        export(load_centre(nano), nano, nano, "float32")


def test_streaming_gives_the_centre(nano):
    centre = load_centre(nano)
    assert digest(dict(stream_centre(nano, frozenset(centre)))) == digest(centre)


def test_distance_of_a_known_step(nano):
    base = load_centre(nano)
    moved = {name: array * np.float32(1.5) for name, array in base.items()}
    assert relative_l2(moved, base.items()) == pytest.approx(0.5, rel=1e-6)
    assert l2_norm(moved) == pytest.approx(1.5 * l2_norm(base), rel=1e-6)


def test_a_broken_model_is_one_clear_error(nano):
    (nano / "model.safetensors").write_bytes(b"not safetensors")
    with pytest.raises(UserError, match="cannot load the model"):
        load_centre(nano)


def test_missing_parts_of_a_model_directory_are_named(tmp_path, nano):
    with pytest.raises(UserError, match="nowhere"):
        locate(str(tmp_path / "nowhere"))
    (nano / "config.json").unlink()
    with pytest.raises(UserError, match=r"config\.json"):
        locate(str(nano))


def test_context_length_is_that_of_the_configuration(nano):
    assert model_context_length(nano) == json.loads((nano / "config.json").read_text())["max_position_embeddings"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("model.embed_tokens.weight", "embedding"),
        ("lm_head.weight", "head"),
        ("model.layers.3.input_layernorm.weight", "norm"),
        ("model.norm.weight", "norm"),
        ("model.layers.3.self_attn.q_norm.weight", "norm"),
        ("model.layers.3.self_attn.q_proj.weight", "attention_q"),
        ("model.layers.3.self_attn.k_proj.bias", "bias"),
        ("model.layers.3.self_attn.o_proj.weight", "attention_o"),
        ("model.layers.3.mlp.gate_proj.weight", "mlp"),
        ("transformer.h.0.attn.c_attn.weight", "attention_qkv"),
        ("transformer.h.0.attn.c_proj.weight", "attention_o"),
        ("transformer.h.0.mlp.c_proj.weight", "mlp"),
        ("transformer.h.0.ln_1.weight", "norm"),
        ("transformer.wte.weight", "embedding"),
    ],
)
def test_kinds_of_tensor(name, kind):
    assert tensor_kind(name) == kind
