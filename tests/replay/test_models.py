"""Loading models: names, seeds, devices, memory, and what cannot be had."""

import importlib
import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from sparselab import replay
from sparselab.replay import devices, models, selfcheck, versions


def test_the_tiny_model(tiny):
    assert tiny.vocab_size == 512
    # The number that load_model's docstring states.
    assert sum(p.numel() for p in tiny.module.parameters()) == 200_360
    assert tiny.config.layer_types == ["linear_attention"] * 3 + ["full_attention"]
    assert tiny.weights == "random (seed 0)"
    assert "float32" in repr(tiny)


def test_the_layer_group_has_the_real_dimensions(models):
    model = models("qwen3.5-0.8b-group", "bfloat16")
    assert model.config.layer_types == ["linear_attention"] * 3 + ["full_attention"]
    assert model.config.hidden_size == 1024
    # One recurrent state of one layer: 16 heads of 128 x 128 in float32.
    assert model.checkpoint_bytes == 3 * (262_144 * 4 + 6_144 * 4 * 2)
    assert model.kv_bytes_per_token == 1_024 * 2


def test_equal_seeds_give_equal_weights_and_others_do_not(tiny):
    again, other = (replay.load_model("tiny", "cpu", "float32", seed=s) for s in (0, 1))
    assert again.fingerprint == tiny.fingerprint
    assert other.fingerprint != tiny.fingerprint


def test_loading_leaves_the_random_state_of_torch_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    replay.load_model("tiny", "cpu", "float32", seed=9)
    assert torch.equal(torch.rand(3), expected)


def test_loading_leaves_the_generators_of_other_devices_alone(monkeypatch):
    def seed_every_device(seed):
        raise AssertionError("seeds CUDA and MPS too")

    monkeypatch.setattr(torch, "manual_seed", seed_every_device)
    replay.load_model("tiny", "cpu", "float32", seed=9)


def test_the_self_check_says_that_the_state_matters(tiny):
    assert tiny.check.passed
    assert set(tiny.check.dropped_differences) == {"recurrent", "conv"}
    assert min(tiny.check.dropped_differences.values()) > 1.0
    assert tiny.check.split_difference < 1e-3


def test_widening_to_float32_for_the_self_check_puts_every_bit_back(models):
    model = models("tiny", "bfloat16")
    before = [parameter.clone() for parameter in model.module.parameters()]
    result = selfcheck._compare_in_float32(model)
    assert result.split_difference < 1e-3
    for old, new in zip(before, model.module.parameters(), strict=True):
        assert new.dtype == old.dtype
        assert torch.equal(old, new)


def test_one_layer_at_a_time_is_widened(models, monkeypatch):
    model = models("tiny", "bfloat16")
    layers = list(model.module.model.layers)
    seen = []
    original = type(layers[0]).forward

    def forward(self, *arguments, **options):
        dtypes = [{parameter.dtype for parameter in layer.parameters()} for layer in layers]
        seen.append(dtypes)
        assert dtypes[layers.index(self)] == {torch.float32}
        return original(self, *arguments, **options)

    monkeypatch.setattr(type(layers[0]), "forward", forward)
    selfcheck._compare_in_float32(model)
    assert seen
    assert all(dtypes.count({torch.bfloat16}) == len(layers) - 1 for dtypes in seen)


def test_a_self_check_that_fails_half_way_puts_the_weights_back(models, monkeypatch):
    model = models("tiny", "bfloat16")
    last = model.module.model.layers[-1]

    def fail(*arguments, **options):
        raise RuntimeError("no such kernel")

    monkeypatch.setattr(last.mlp, "forward", fail)
    with pytest.raises(ValueError, match=r"does not run in torch\.float32 .*no such kernel"):
        selfcheck._compare_in_float32(model)
    assert {parameter.dtype for parameter in model.module.parameters()} == {torch.bfloat16}
    assert not any(layer._forward_pre_hooks for layer in model.module.model.layers)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"name": "tinny"}, OSError, r"'tinny' cannot be loaded \(did you mean 'tiny'\?\): use a"),
        ({"name": "tiny", "device": "tpu"}, ValueError, "unknown device 'tpu'"),
        ({"name": "tiny", "device": "gpu0"}, ValueError, "unknown device 'gpu0'"),
        ({"name": "tiny", "dtype": "int8"}, ValueError, "unknown dtype 'int8'"),
    ],
)
def test_bad_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        replay.load_model(**arguments)


@pytest.mark.parametrize("name", ["nothing", "folder/that/is/not", "owner/not-cached"])
def test_a_model_that_is_not_there_names_three_things_that_would_work(monkeypatch, name):
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(OSError, match="cannot be loaded") as refusal:
        replay.load_model(name)
    message = str(refusal.value)
    assert "\n" not in message
    for remedy in ("a random one (tiny,", "a folder made by save_pretrained", "a hub id"):
        assert remedy in message


def test_a_model_that_does_not_fit_is_refused_before_it_is_built(monkeypatch):
    monkeypatch.setattr(devices, "available_bytes", lambda device: 2**30)

    def never(*arguments):
        raise AssertionError("must not be built")

    monkeypatch.setattr(models.random_models, "build", never)
    with pytest.raises(ValueError, match=r"'qwen3.5-0.8b-random' needs 2.8 GiB .* 1.0 GiB free"):
        replay.load_model("qwen3.5-0.8b-random", "cpu", "float32")


def test_weights_that_do_not_fit_in_host_memory_first_are_refused(monkeypatch):
    # 1.4 GiB in bfloat16 where the model runs, but 2.8 GiB where its weights are drawn.
    monkeypatch.setattr(devices, "available_bytes", lambda device: 2 * 2**30)
    monkeypatch.setattr(models.random_models, "build", None)
    with pytest.raises(ValueError, match=r"making the weights .* needs 2.8 GiB on cpu"):
        replay.load_model("qwen3.5-0.8b-random", "cpu", "bfloat16")


def test_weights_from_a_folder_must_fit_in_host_memory_whatever_the_device(monkeypatch, tmp_path):
    models.random_models.configs()["tiny"].save_pretrained(tmp_path)
    monkeypatch.setattr(models, "choose_device", lambda device: torch.device("cuda"))
    free = {"cuda": 2**40, "cpu": 1000}
    monkeypatch.setattr(devices, "available_bytes", lambda device: free[device.type])
    with pytest.raises(ValueError, match=r"making the weights .* needs .* on cpu"):
        replay.load_model(tmp_path, "cuda", "float32")


@pytest.mark.parametrize("content", [None, b"not safetensors"], ids=["missing", "broken"])
def test_a_model_whose_weights_cannot_be_read_names_what_would_work(tmp_path, content):
    models.random_models.configs()["tiny"].save_pretrained(tmp_path)
    if content is not None:
        (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(OSError, match=r"cannot be loaded.* use a random one") as refusal:
        replay.load_model(tmp_path, "cpu", "float32")
    assert "\n" not in str(refusal.value)


@pytest.fixture
def folder(tiny, tmp_path):
    """A folder with the tiny model in it, as ``save_pretrained`` makes it."""
    tiny.module.save_pretrained(tmp_path)
    return tmp_path


def change_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def change_weights(folder, change):
    path = folder / "model.safetensors"
    save_file(change(load_file(path)), path, metadata={"format": "pt"})


def without_layer_1(weights):
    return {name: tensor for name, tensor in weights.items() if "layers.1." not in name}


def under_other_names(weights):
    return {f"other.{name}": tensor for name, tensor in weights.items()}


@pytest.mark.parametrize("change", [without_layer_1, under_other_names])
def test_weights_that_are_missing_are_not_drawn_at_random_without_a_word(folder, change):
    change_weights(folder, change)
    with pytest.raises(OSError, match=r"its files hold \d+ of the weights not at all"):
        replay.load_model(folder, "cpu", "float32")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"vocab_size": 300}, "in another shape, such as model.embed_tokens.weight"),
        ({"hidden_size": "abc"}, "'hidden_size' expected int"),
        ({"hidden_act": "nope"}, "nope"),
        ({"model_type": "nope"}, "nope"),
    ],
)
def test_a_config_that_cannot_be_built_is_refused_in_one_sentence(folder, changes, reason):
    change_config(folder, **changes)
    with pytest.raises(OSError, match=rf"cannot be loaded.*{reason}") as refusal:
        replay.load_model(folder, "cpu", "float32")
    assert "\n" not in str(refusal.value)


def test_code_in_a_models_folder_is_never_run(folder, monkeypatch):
    change_config(folder, model_type="their_own", auto_map={"AutoConfig": "code.Config"})
    (folder / "code.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\n")
    monkeypatch.setattr("builtins.input", lambda *prompt: "y")
    with pytest.raises(OSError, match="custom code"):
        replay.load_model(folder, "cpu", "float32")
    assert not (folder / "ran").exists()


def test_a_saved_model_is_the_same_model(tiny, folder):
    assert replay.load_model(folder, "cpu", "float32").fingerprint == tiny.fingerprint


@pytest.mark.parametrize("changes", [{"rms_norm_eps": 1e-3}, {"hidden_act": "gelu"}])
def test_the_same_weights_in_another_architecture_are_another_model(tiny, folder, changes):
    change_config(folder, **changes)
    assert replay.load_model(folder, "cpu", "float32").fingerprint != tiny.fingerprint


def test_a_few_changed_weights_make_another_model(tiny, folder):
    def negate_seven_rows(weights):
        weights["model.embed_tokens.weight"][1:8] *= -1
        return weights

    change_weights(folder, negate_seven_rows)
    assert replay.load_model(folder, "cpu", "float32").fingerprint != tiny.fingerprint


def test_kernels_that_do_not_compute_a_model_are_named(monkeypatch):
    def only_half_precision(self, tokens, cache, start):
        raise AssertionError("float32 is not supported")

    monkeypatch.setattr(replay.ReplayModel, "all_logits", only_half_precision)
    with pytest.raises(ValueError, match=r"does not run in torch\.float32 on cpu .*AssertionError"):
        replay.load_model("tiny", "cpu", "float32")


@pytest.mark.parametrize("seed", ["a", 1.5, True])
def test_a_seed_is_an_integer(seed):
    with pytest.raises(TypeError, match="seed must be an integer"):
        replay.load_model("tiny", "cpu", "float32", seed=seed)


def test_weight_bytes_are_those_of_the_built_model(tiny):
    built = sum(parameter.nbytes for parameter in tiny.module.parameters())
    assert models.weight_bytes(tiny.config, torch.float32) == built


@pytest.mark.parametrize("version", ["5.24.0", "5.24.3"])
def test_supported_versions_of_transformers(version):
    versions.check_transformers(version)


@pytest.mark.parametrize("version", ["4.57.1", "5.23.9", "5.25.0", "6.0.0"])
def test_other_versions_of_transformers_are_refused(version):
    with pytest.raises(ImportError, match=rf"transformers {version} is installed, but replay"):
        versions.check_transformers(version)


def test_another_version_of_transformers_is_refused_on_import(monkeypatch):
    monkeypatch.setattr(versions, "NEWEST", "5.0")
    with pytest.raises(ImportError, match=r"replay supports 5.24 <= version < 5.0"):
        importlib.reload(replay)


def test_devices_and_dtypes():
    cpu = devices.choose_device("cpu")
    assert devices.choose_dtype("bf16", cpu) == torch.bfloat16
    assert devices.choose_dtype(torch.float16, cpu) == torch.float16
    assert devices.choose_dtype("auto", cpu) in (torch.bfloat16, torch.float32)
    assert devices.choose_dtype("auto", torch.device("mps")) == torch.float32
    assert devices.available_bytes(cpu) > 0
    assert devices.device_name(cpu).endswith(", 1 thread")


@pytest.mark.parametrize(("major", "dtype"), [(7, torch.float16), (9, torch.bfloat16)])
def test_the_dtype_is_that_of_the_chosen_gpu_not_of_the_current_one(monkeypatch, major, dtype):
    capabilities = {"cuda:0": (16 - major, 0), "cuda:1": (major, 5)}
    monkeypatch.setattr(
        torch.cuda, "get_device_capability", lambda device: capabilities[str(device)]
    )
    assert devices.choose_dtype("auto", torch.device("cuda:1")) == dtype


def test_memory_that_torch_holds_without_a_tensor_in_it_is_free(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (100, 1000))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 700)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 300)
    assert devices.available_bytes(torch.device("cuda")) == 500


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_a_missing_gpu_is_named():
    with pytest.raises(ValueError, match="device 'cuda' is not there: torch sees 0 CUDA devices"):
        devices.choose_device("cuda")
