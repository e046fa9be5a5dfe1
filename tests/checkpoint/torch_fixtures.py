"""Writes the folders torch/gpt2 and torch/bert for pretrained_test.cpp and example 35: models of transformers with
random weights, saved by save_pretrained, and expected.safetensors with token ids, labels, and the logits before and
after one step of gradient descent, computed in float64.

    python3 -m venv torch && torch/bin/pip install torch transformers
    torch/bin/python tests/checkpoint/torch_fixtures.py

`check FOLDER FIXTURE` loads the model that example 35 trained for a step and saved into FOLDER, and compares its logits
with those of the fixture's folder. `large FOLDER` writes a GPT-2 of 124 million weights, which the example compares if
the folder is its argument.

Written with PyTorch 2.15.0 and transformers 5.24.0.
"""

import pathlib
import sys

import safetensors.torch
import torch
import transformers

WORDS, LENGTH, ROWS, RATE = 60, 12, 2, 1 / 16
MODELS = {
    "gpt2": transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=WORDS,
            n_positions=16,
            n_embd=24,
            n_layer=2,
            n_head=3,
            bos_token_id=0,
            eos_token_id=0,
        )
    ),
    "bert": transformers.BertForMaskedLM(
        transformers.BertConfig(
            vocab_size=WORDS,
            max_position_embeddings=16,
            hidden_size=24,
            num_hidden_layers=2,
            num_attention_heads=3,
            intermediate_size=96,
        )
    ),
}


def write(folder, model, words, length, rows):
    """Saves the model with random weights, none of which is 0 or 1, and what it computes."""
    random = torch.Generator().manual_seed(7)
    model = model.eval()
    with torch.no_grad():
        for name, values in model.named_parameters():
            is_scale = values.dim() == 1 and name.endswith("weight")
            values.normal_(1.0 if is_scale else 0.0, 0.3 if words == WORDS else 0.05, generator=random)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    ids = torch.randint(1, words, (rows, length), generator=random)  # 0 is BERT's padding, whose vector is not trained
    labels = torch.randint(words, (rows, length), generator=random)
    model = model.double()
    logits = model(ids).logits
    torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten()).backward()
    torch.optim.SGD(model.parameters(), RATE).step()
    with torch.no_grad():
        after = model(ids).logits
    expected = {"input_ids": ids, "labels": labels, "logits": logits.detach(), "logits_after_step": after}
    safetensors.torch.save_file(expected, folder / "expected.safetensors")
    print(folder, logits.std().item(), (after - logits).std().item())


def check(folder, fixture):
    """Loads the model that example 35 trained for a step and saved, and compares its logits with the expected ones."""
    expected = safetensors.torch.load_file(fixture / "expected.safetensors")
    kind = transformers.AutoConfig.from_pretrained(folder).model_type
    model, info = type(MODELS[kind]).from_pretrained(folder, output_loading_info=True)
    problems = {what: names for what, names in info.items() if names}
    with torch.no_grad():
        logits = model.eval()(expected["input_ids"]).logits
    difference = (logits - expected["logits_after_step"]).abs().max().item()
    print(f"{folder}: largest difference {difference:.1e}, {problems or 'all weights are loaded'}")
    return difference < 1e-4 and not problems


if __name__ == "__main__":
    if sys.argv[1:2] == ["large"]:
        write(pathlib.Path(sys.argv[2]), transformers.GPT2LMHeadModel(transformers.GPT2Config()), 50257, 64, ROWS)
    elif sys.argv[1:2] == ["check"]:
        sys.exit(not check(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])))
    else:
        for name, model in MODELS.items():
            write(pathlib.Path(__file__).parent / "torch" / name, model, WORDS, LENGTH, ROWS)
