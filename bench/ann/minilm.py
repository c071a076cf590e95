"""Many sentences to vectors: the demo's model (all-MiniLM-L6-v2) as an ONNX graph with 8-bit weights.

Four times as fast as the same model in plain numpy, which a hundred thousand texts need. The graph is built here from the
weights of the demo's package. Texts of equal token count run together, so there is no padding and no attention mask.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

sys.path.append(str(Path(__file__).resolve().parents[2] / "demo"))

import embed

OPSET = 20
BATCH_TOKENS = 2048


class Graph:
    """An ONNX graph that grows node by node."""

    def __init__(self, weights: dict[str, np.ndarray]) -> None:
        self.weights = weights
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, value: np.ndarray) -> str:
        """A tensor of the graph; its name."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def add(self, op: str, *inputs: str, outputs: int = 1, **attributes: object) -> str | list[str]:
        """One node; the name of its output, or of each of them."""
        names = [f"n{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def dense(self, x: str, *layers: str) -> str:
        """One linear layer, or several side by side."""
        weight = np.concatenate([self.weights[f"{layer}.weight"] for layer in layers])
        bias = np.concatenate([self.weights[f"{layer}.bias"] for layer in layers])
        return self.add("Add", self.add("MatMul", x, self.constant(weight.T)), self.constant(bias))

    def norm(self, x: str, layer: str) -> str:
        """Layer normalisation over the last axis."""
        weight, bias = (self.constant(self.weights[f"{layer}.{part}"]) for part in ("weight", "bias"))
        return self.add("LayerNormalization", x, weight, bias, axis=-1, epsilon=1e-12)

    def attention(self, x: str, layer: str) -> str:
        """Self-attention over all tokens."""
        parts = (f"{layer}.attention.self.{part}" for part in ("query", "key", "value"))
        split = self.add("Split", self.dense(x, *parts), outputs=3, axis=-1, num_outputs=3)
        apart = self.constant(np.array([0, 0, embed.HEADS, embed.DIM // embed.HEADS], dtype=np.int64))
        query, key, value = (self.add("Reshape", part, apart) for part in split)
        query = self.add("Transpose", query, perm=[0, 2, 1, 3])
        key = self.add("Transpose", key, perm=[0, 2, 3, 1])
        value = self.add("Transpose", value, perm=[0, 2, 1, 3])
        scale = self.constant(np.array((embed.DIM // embed.HEADS) ** -0.5, dtype=np.float32))
        share = self.add("Softmax", self.add("Mul", self.add("MatMul", query, key), scale), axis=-1)
        mixed = self.add("Transpose", self.add("MatMul", share, value), perm=[0, 2, 1, 3])
        joined = self.add("Reshape", mixed, self.constant(np.array([0, 0, embed.DIM], dtype=np.int64)))
        return self.dense(joined, f"{layer}.attention.output.dense")

    def encoder(self) -> str:
        """Token and place numbers to the mean of the last hidden states."""
        table = self.constant(self.weights["embeddings.word_embeddings.weight"])
        places = self.constant(self.weights["embeddings.position_embeddings.weight"])
        kind = self.constant(self.weights["embeddings.token_type_embeddings.weight"][0])
        summed = self.add("Add", self.add("Gather", table, "tokens"), self.add("Gather", places, "places"))
        x = self.norm(self.add("Add", summed, kind), "embeddings.LayerNorm")
        for n in range(embed.LAYERS):
            layer = f"encoder.layer.{n}"
            x = self.norm(self.add("Add", x, self.attention(x, layer)), f"{layer}.attention.output.LayerNorm")
            wide = self.add("Gelu", self.dense(x, f"{layer}.intermediate.dense"))
            narrow = self.dense(wide, f"{layer}.output.dense")
            x = self.norm(self.add("Add", x, narrow), f"{layer}.output.LayerNorm")
        return self.add("ReduceMean", x, self.constant(np.array([1], dtype=np.int64)), keepdims=0)


def build(weights: dict[str, np.ndarray], path: Path) -> None:
    """Writes the model with 8-bit weights; activations are quantised as they come."""
    graph = Graph(weights)
    out = graph.encoder()
    inputs = [
        helper.make_tensor_value_info("tokens", TensorProto.INT64, ["texts", "length"]),
        helper.make_tensor_value_info("places", TensorProto.INT64, ["length"]),
    ]
    outputs = [helper.make_tensor_value_info(out, TensorProto.FLOAT, ["texts", embed.DIM])]
    whole = helper.make_graph(graph.nodes, "minilm", inputs, outputs, graph.constants)
    model = helper.make_model(whole, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    plain = path.with_suffix(".f32.onnx")
    onnx.save(model, plain)
    quantize_dynamic(
        plain, path, weight_type=QuantType.QInt8, op_types_to_quantize=["MatMul"], per_channel=True
    )
    plain.unlink()


def vectors(texts: list[str], path: Path, threads: int, progress: Callable[[int], None]) -> np.ndarray:
    """Unit vectors, float32 `[len(texts), 384]`; the model is written to `path` on the way."""
    folder = embed.model_folder()
    build(embed.read_safetensors(folder / "model.safetensors"), path)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    tokenizer = embed.Tokenizer(folder / "vocab.txt")
    tokens = [tokenizer.encode(text) for text in texts]
    by_length: dict[int, list[int]] = {}
    for row, ids in enumerate(tokens):
        by_length.setdefault(len(ids), []).append(row)
    out = np.empty((len(texts), embed.DIM), dtype=np.float32)
    done = 0
    for length, rows in sorted(by_length.items()):
        step = max(1, BATCH_TOKENS // length)
        for at in range(0, len(rows), step):
            batch = rows[at : at + step]
            fed = {"tokens": np.array([tokens[row] for row in batch]), "places": np.arange(length)}
            out[batch] = session.run(None, fed)[0]
            done += len(batch)
            progress(done)
    return out / np.linalg.norm(out, axis=1, keepdims=True)
