"""Tokenizers: Qwen3.5's vocabulary offline, transformers by name, or one clear sentence."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from sparselab.workloads import load
from sparselab.workloads.tokenizers import get_tokenizer


def test_the_default_round_trips_and_is_read_only():
    ids = get_tokenizer().encode("A tide mill, 1741.")
    assert ids.size > 3
    assert ids.max() < 248_320
    with pytest.raises(ValueError, match="read-only"):
        ids[0] = 1


def test_chat_marks_are_single_tokens():
    assert get_tokenizer().encode("<|im_start|>").size == 1


def test_a_tokenizer_goes_by_its_name():
    with pytest.raises(TypeError, match="tokenizer must be a str, got list"):
        get_tokenizer(["qwen3.5"])


def test_a_transformers_tokenizer_from_a_folder(tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {"[UNK]": 0, "a": 1, "heron": 2, "waited": 3}
    raw = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=raw).save_pretrained(tmp_path)
    assert get_tokenizer(str(tmp_path)).encode("a heron waited").tolist() == [1, 2, 3]
    workload = load("quality", tokenizer=str(tmp_path))
    assert workload.tokenizer == str(tmp_path)


def test_what_cannot_be_had_offline_is_one_sentence():
    # A process of its own, since the hub's client reads its offline switch when it is imported.
    pytest.importorskip("transformers", reason="transformers is not installed")
    pytest.importorskip("datasets", reason="the package datasets is not installed")
    program = (
        "from sparselab.workloads import load\n"
        "for options in ({'tokenizer': 'no-one/no-model'}, {'path': 'hub'}):\n"
        "    try:\n"
        "        load('quality', **options)\n"
        "    except ValueError as error:\n"
        "        print(' '.join(str(error).split()))\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
        check=True,
    )
    tokenizer, dataset = finished.stdout.splitlines()
    assert tokenizer.startswith("tokenizer 'no-one/no-model' is neither a folder with a tokenizer")
    assert tokenizer.endswith("'qwen3.5' works offline.")
    assert dataset.startswith("hub data set 'emozilla/quality', split 'validation', cannot be had")
    assert dataset.endswith("give the path of a local copy instead.")
