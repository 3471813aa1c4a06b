"""Beam search by Hugging Face transformers with random weights; started by `accelerator_decoding.py`."""

import json
import sys
import time

import numpy as np
import torch
import transformers

END, START, PADDING = 3, 2, 0


@torch.inference_mode()
def main() -> None:
    work, (dtype, device, rounds) = np.load(sys.argv[1]), sys.argv[2:]
    encoder, decoder, width, inner, heads, vocabulary, batch, beam, steps = work["shape"].tolist()
    shape = {"d_model": width, "encoder_layers": encoder, "decoder_layers": decoder, "vocab_size": vocabulary}
    shape |= {f"{side}_ffn_dim": inner for side in ("encoder", "decoder")}
    shape |= {f"{side}_attention_heads": heads for side in ("encoder", "decoder")}
    ids = {"pad_token_id": PADDING, "eos_token_id": END, "decoder_start_token_id": START, "forced_eos_token_id": None}
    config = transformers.MarianConfig(
        **shape, **ids, activation_function="relu", scale_embedding=True, tie_word_embeddings=True
    )
    torch.manual_seed(0)
    model = transformers.MarianMTModel(config).eval().to(device, getattr(torch, dtype))
    groups = torch.from_numpy(work["source"]).long().to(device).split(batch)
    options = {"num_beams": beam, "min_new_tokens": steps, "max_new_tokens": steps, "length_penalty": 0.6}

    def run() -> float:
        start = time.perf_counter()
        for rows in groups:
            found = model.generate(rows, attention_mask=torch.ones_like(rows), do_sample=False, **options)
            assert found.shape[1] >= steps, found.shape
        if device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - start

    run()
    seconds = [run() for _ in range(int(rounds))]
    print(
        json.dumps({"seconds": seconds, "peer": f"transformers {transformers.__version__}, torch {torch.__version__}"})
    )


if __name__ == "__main__":
    main()
