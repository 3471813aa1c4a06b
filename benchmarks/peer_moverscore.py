"""The published MoverScore (v1) on the texts of `embedding_metrics.py`, with another model.

While it is imported, the program downloads a model and loads it with a library that no longer exists. This script
replaces these calls by the model and tokenizer of transformers, from a folder.
"""

import collections
import json
import os
import pathlib
import sys
import tempfile
import time
import types

DEVICE = sys.argv[3] if len(sys.argv) > 3 else "cpu"
if DEVICE == "cpu":
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import numpy as np
import torch
import transformers

if DEVICE == "cpu":
    torch.set_num_threads(1)
now = time.process_time if DEVICE == "cpu" else time.perf_counter


class Model(torch.nn.Module):
    """Returns all hidden states except the embeddings, like the old library."""

    def __init__(self, folder):
        super().__init__()
        self.bert = transformers.BertModel.from_pretrained(folder, attn_implementation="sdpa")

    def forward(self, ids, segments, attention_mask, output_all_encoded_layers):
        output = self.bert(ids, attention_mask, segments, output_hidden_states=True)
        return list(output.hidden_states[1:]), output.pooler_output


def program(folder):
    """Return the module `moverscore`, with the model of a folder."""
    tokenizer = transformers.BertTokenizer(str(pathlib.Path(folder) / "vocab.txt"))
    tokenizer.max_len = 512
    model = Model(folder)

    class Pretrained(torch.nn.Module):
        @classmethod
        def from_pretrained(cls, *arguments):
            return types.SimpleNamespace(eval=lambda: None, to=lambda device: None)

    library = types.ModuleType("pytorch_pretrained_bert")
    library.BertTokenizer = types.SimpleNamespace(from_pretrained=lambda *arguments, **options: tokenizer)
    library.BertModel = transformers.BertModel
    library.modeling = types.ModuleType("pytorch_pretrained_bert.modeling")
    library.modeling.BertPreTrainedModel = Pretrained
    sys.modules |= {library.__name__: library, library.modeling.__name__: library.modeling}
    with tempfile.TemporaryDirectory() as downloads:
        (pathlib.Path(downloads) / "MNLI_BERT.zip").touch()
        os.environ["MOVERSCORE"] = downloads
        import moverscore
    moverscore.model, moverscore.device = model.eval().to(DEVICE), DEVICE
    return moverscore


def main():
    texts, folder = np.load(sys.argv[1]), sys.argv[2]
    hypotheses, references = texts["hypotheses"].tolist(), texts["references"].tolist()
    module, uniform = program(folder), collections.defaultdict(lambda: 1.0)

    def score(hypotheses, references):
        return module.word_mover_score(references, hypotheses, uniform, uniform, batch_size=64, device=DEVICE)

    score(hypotheses[:64], references[:64])
    start = now()
    scores = score(hypotheses, references)
    print(json.dumps({"seconds": now() - start, "scores": scores}))


if __name__ == "__main__":
    main()
