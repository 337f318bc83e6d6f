"""The step model: a backbone, which computes hidden states, with a score head that is applied at the ends
of steps.

A backbone of the Llama family is a `Decoder`, with memory-mapped weights and computed by `core.models.network`.
This avoids the cost of Transformers: importing it takes longer than judging a trace with half a billion parameters,
and its layers also compute padding. Weights that are stored in the requested type are not copied. Other networks
are loaded by Transformers (`core.models.pretrained`).
"""

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

import torch
from torch import Tensor, nn

from stepsight.core.errors import UserError
from stepsight.core.models import llada
from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.devices import torch_dtype
from stepsight.core.models.network import DecoderConfig, DecoderNetwork, decoder_config
from stepsight.core.models.placement import Placement
from stepsight.core.models.weights import CheckpointWeights
from stepsight.core.scores import Outputs
from stepsight.core.trace import Label

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel


class Decoder(nn.Module):
    """A network that computes the hidden states of tokens. Its weights have the same names as in Transformers."""

    base_model_prefix = "model"

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = Weights(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(_layer(config) for _ in range(config.num_hidden_layers))
        self.norm = Weights(config.hidden_size)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> tuple[Tensor]:
        """Return hidden states of shape (batch, tokens, hidden) for `input_ids` of shape (batch, tokens). The input
        is right-padded; `attention_mask` is 0 on padding."""
        rows, tokens = input_ids.shape
        network = DecoderNetwork.of(self, self.config)
        # Padding follows the input, and a causal network never looks at it.
        sees_padding = not self.config.is_causal and attention_mask is not None and not bool(attention_mask.all())
        mask = attention_mask.bool()[:, None, None] if sees_padding and attention_mask is not None else None

        def attend(layer: int, query: Tensor, key: Tensor, value: Tensor, *_: Any) -> Tensor:
            query, key, value = (
                part.view(rows, tokens, *part.shape[1:]).transpose(1, 2) for part in (query, key, value)
            )
            if mask is None:
                attended = network.attention(layer, query, key, value)
            else:
                attended = network.attention_within(query, key, value, lambda _: (slice(None), mask))
            return attended.transpose(1, 2).flatten(0, 1)

        positions = torch.arange(tokens).repeat(rows)
        return (network.states(input_ids.flatten(), positions, attend).view(rows, tokens, -1),)


class Weights(nn.Module):
    """A weight of the given shape and, if `bias` is True, a bias with one element per row. Both are filled from
    files later."""

    def __init__(self, *shape: int, bias: bool = False) -> None:
        super().__init__()
        # PyTorch's own layers draw random numbers even on the meta device.
        self.weight = nn.Parameter(torch.empty(shape, device="meta"), requires_grad=False)
        rows = nn.Parameter(torch.empty(shape[0], device="meta"), requires_grad=False) if bias else None
        self.bias = rows


def _layer(config: DecoderConfig) -> nn.ModuleDict:
    """Create the weights of one layer."""
    width, inner = config.hidden_size, config.intermediate_size
    heads, kv_heads = (
        count * config.head_dim for count in (config.num_attention_heads, config.num_key_value_heads)
    )
    attention = {
        "q_proj": Weights(heads, width, bias=config.biased),
        "k_proj": Weights(kv_heads, width, bias=config.biased),
        "v_proj": Weights(kv_heads, width, bias=config.biased),
        "o_proj": Weights(width, heads),
    }
    mlp = {
        "gate_proj": Weights(inner, width),
        "up_proj": Weights(inner, width),
        "down_proj": Weights(width, inner),
    }
    return nn.ModuleDict(
        {
            "self_attn": nn.ModuleDict(attention),
            "mlp": nn.ModuleDict(mlp),
            "input_layernorm": Weights(width),
            "post_attention_layernorm": Weights(width),
        }
    )


def read_decoder(checkpoint: Checkpoint, dtype: torch.dtype, attention: str | None) -> Decoder | None:
    """Load the decoder of a checkpoint with memory-mapped weights.

    Returns None if the network is of a different kind, or if a tensor is missing or misshapen. Transformers then
    reports the fault.
    """
    config, weights = decoder_config(checkpoint.config, attention), checkpoint.weights
    if config is None:
        return None
    decoder = Decoder(config)
    shapes = {name: tuple(tensor.shape) for name, tensor in decoder.state_dict().items()}
    names = _names(set(shapes), weights, checkpoint.config)
    if names is None or any(weights.shape(names[name]) != shape for name, shape in shapes.items()):
        return None
    tensors = {name: weights.read(stored).to(dtype) for name, stored in names.items()}
    decoder.load_state_dict(tensors, assign=True)
    return decoder.eval()


def _names(needed: set[str], weights: CheckpointWeights, values: Mapping[str, Any]) -> dict[str, str] | None:
    """Map the name of each weight in `needed` to its name in the files, or return None if a weight is missing."""
    if llada.recognises(values):
        stored = {llada.renamed(name): name for name in weights}
    else:
        stored = {name: weights.backbone_prefix + name for name in needed}
    names = {name: stored.get(name, "") for name in needed}
    return names if all(name in weights for name in names.values()) else None


Part = TypeVar("Part", bound=nn.Module)


def backbone_of(checkpoint: Checkpoint, place: Placement) -> "PreTrainedModel":
    """Load the backbone of a checkpoint, with the attention mask named in its stepsight.json.

    The backbone is a `Decoder` if possible, and otherwise the network that Transformers loads. Raises `UserError`
    if `core.models.pretrained.load_backbone` does.
    """
    decoder = decoder_of(checkpoint, place)
    if decoder is not None:
        return cast("PreTrainedModel", decoder)
    # This import loads Transformers.
    from stepsight.core.models.pretrained import load_backbone

    return load_backbone(checkpoint, place, checkpoint.card.get("attention"))


def decoder_of(checkpoint: Checkpoint, place: Placement) -> Decoder | None:
    """Load the backbone as a `Decoder`, with memory-mapped weights.

    Returns None if the network or the device needs Transformers, or if the checkpoint has a fault (Transformers
    then reports the fault).
    """
    if not place.on_processor:
        return None
    return read_decoder(checkpoint, torch_dtype(place.dtype), checkpoint.card.get("attention"))


def main_device(model: nn.Module, otherwise: torch.device | None = None) -> torch.device:
    """Return the device on which a model expects its inputs. It is the device of the first weights in memory, or
    `otherwise` if none are in memory."""
    devices = (parameter.device for parameter in model.parameters() if parameter.device.type != "meta")
    return next(devices, otherwise or torch.device("cpu"))


def to_device_of(model: nn.Module, part: Part, place: Placement) -> Part:
    """Move a part, such as a score head, to the device of a model's weights, convert it to the data type of
    `place`, and return it."""
    return part.to(main_device(model), torch_dtype(place.dtype))


def context_of(backbone: "PreTrainedModel") -> int | None:
    """Return the maximum input length in tokens, or None if the config sets no limit."""
    limit = getattr(backbone.config, "max_position_embeddings", None)
    if not isinstance(limit, int):
        return None
    tables = (part for name, part in backbone.named_modules() if name.endswith("position_embeddings"))
    skipped = [part.padding_idx for part in tables if isinstance(part, nn.Embedding)]
    # RoBERTa's positions begin after the padding position.
    return limit - skipped[0] - 1 if skipped and skipped[0] is not None else limit


@torch.inference_mode()
def looks_ahead(backbone: "PreTrainedModel") -> bool:
    """True if changing the last token changes any earlier hidden state.

    This is tested by running the backbone, since configs do not always say so. Raises `UserError` if the result
    depends on padding, because some encoders respect `is_causal` only in a batch without padding.
    """
    training = backbone.training
    backbone.train(False)
    ids = torch.tensor([[5, 6, 7, 8], [5, 6, 7, 9], [5, 6, 7, 8]], device=main_device(backbone))
    ids %= int(backbone.config.vocab_size)
    mask = torch.ones_like(ids)
    padded = mask.clone()
    padded[2, 2:] = 0
    results = set()
    for rows, attention_mask in ((2, mask), (3, padded)):
        hidden = backbone(input_ids=ids[:rows], attention_mask=attention_mask[:rows])[0][:2, :-1].float()
        results.add(not torch.allclose(hidden[0], hidden[1], rtol=1e-6, atol=0))
    backbone.train(training)
    if len(results) > 1:
        kind = backbone.config.model_type
        raise UserError(
            f"a backbone of type {kind!r} does not support the requested attention mask.", "Leave the mask out."
        )
    return results.pop()


class StepModel(nn.Module):
    """The model `p_i = softmax(W h_i)` (paper, §3.3).

    `h_i` is the backbone's hidden state at the end of step `i`. The attention mask is the backbone's own: if
    `config.is_causal` is False, every position sees the whole input.
    """

    def __init__(self, backbone: "PreTrainedModel", head: nn.Module | None = None) -> None:
        """Create a model from a backbone and a head.

        `head` maps the hidden states of the last layer to the logits of neg, neu and pos, with shape (…, 3). If it
        is None, a new linear head is created.
        """
        super().__init__()
        self.model = backbone
        self.config: PretrainedConfig = backbone.config
        self.score: nn.Module = head or nn.Linear(self.config.hidden_size, len(Label), bias=False)
        # Encoders keep no cache, and some do not accept the argument.
        cached = "use_cache" in inspect.signature(backbone.forward).parameters
        self._options: dict[str, Any] = {"use_cache": False} if cached else {}

    @classmethod
    def from_config(cls, config: "PretrainedConfig") -> "StepModel":
        """Create a model with randomly initialised weights, using torch's global generator."""
        # This import takes seconds, and scoring works without it.
        from transformers import AutoModel

        backbone = AutoModel.from_config(config, attn_implementation="sdpa")  # type: ignore[no-untyped-call]
        return cls.with_new_head(backbone)

    @classmethod
    def with_new_head(cls, backbone: "PreTrainedModel") -> "StepModel":
        """Create a model with a randomly initialised head, using torch's global generator."""
        width = int(backbone.config.hidden_size)
        head = nn.Linear(width, len(Label), bias=False)
        nn.init.normal_(head.weight, std=width**-0.5)
        return cls(backbone, head)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, ends: Tensor) -> Tensor:
        """Return the logits at the positions `ends`, with shape (batch, steps, 3).

        `input_ids` and `attention_mask` (1 on real tokens) have the shape (batch, tokens) and are right-padded.
        `ends` has the shape (batch, steps) and holds the positions of step ends.
        """
        hidden = self.states(input_ids=input_ids, attention_mask=attention_mask, **self._options)
        return self.logits(hidden, ends)

    def states(self, **inputs: Any) -> Tensor:
        """Return the states that the head reads, of shape (batch, tokens, hidden). The arguments are passed to the
        backbone."""
        return self.model(**inputs)[0]

    def logits(self, hidden: Tensor, ends: Tensor) -> Tensor:
        """Apply the head to the hidden states at the positions `ends`.

        `hidden` has the shape (batch, tokens, hidden), `ends` the shape (batch, steps), and the result (batch,
        steps, 3).
        """
        return self.score(self._hidden_at(hidden, ends))

    def _hidden_at(self, hidden: Tensor, ends: Tensor) -> Tensor:
        index = ends.clamp(min=0).unsqueeze(-1).expand(-1, -1, hidden.shape[-1])
        # The layers of a large model may lie on several devices.
        return hidden.gather(1, index.to(hidden.device)).to(main_device(self.score, hidden.device))

    def judge(self, input_ids: Tensor, attention_mask: Tensor, ends: Tensor) -> Tensor:
        """Like `forward`, but return the probabilities at the positions `ends`. The result has
        the shape (batch, steps, columns)."""
        hidden = self.states(input_ids=input_ids, attention_mask=attention_mask, **self._options)
        return self.probabilities_at(hidden, ends)

    def probabilities_at(self, hidden: Tensor, ends: Tensor) -> Tensor:
        """Return the probabilities at the positions `ends`, of shape (batch, steps), for `hidden` of shape (batch,
        tokens, hidden)."""
        return self.probabilities(self._hidden_at(hidden, ends))

    def probabilities(self, hidden: Tensor) -> Tensor:
        """Return the probabilities of neg, neu and pos as float32, with shape (…, 3).

        `hidden` holds hidden states of shape (…, hidden). If the head is an ensemble, its spread is added as a
        fourth column.
        """
        probs: Tensor = self.score(hidden).float().softmax(-1)
        spread = getattr(self.score, "spread", None)
        return probs if spread is None else torch.cat([probs, spread(hidden).float().unsqueeze(-1)], dim=-1)

    def activation_checkpointing_enable(self, **options: Any) -> None:
        """Make the backbone's layers store only their input and recompute everything else in the backward pass."""
        self.model.activation_checkpointing_enable(**options)


ClassOrder = tuple[int | None, int | None, int | None]
"""The classes of a checkpoint's head that stand for neg, neu and pos, such as (2, 1, 0) if pos is its
first; None if no class does."""

THREE_WAY: ClassOrder = (0, 1, 2)
VALIDITY: ClassOrder = (0, None, 1)
"""The order of a head of two classes, wrong and right."""
SIGMOID: ClassOrder = (None, None, 0)
"""The order of a head of one class, whose sigmoid is the probability of right."""


def outputs_of(order: ClassOrder) -> Outputs:
    """Return the kind of outputs of an evaluator whose head has this order: validity if no class means neu, else
    three-way."""
    return Outputs.VALIDITY if order[Label.NEU] is None else Outputs.THREE_WAY


def linear_head(weight: Tensor, bias: Tensor | None = None, order: ClassOrder = THREE_WAY) -> nn.Linear:
    """Create a head with three logits from a checkpoint's `bias` and its `weight` of shape (classes, hidden).

    `order` gives the row of `weight` for each label, or None. A label without a row has the logit -inf and so the
    probability 0. With two classes the probabilities are `(1 - v, 0, v)`, where `v` comes from the softmax over the
    two. With one class, `order` is `SIGMOID`: the logit of neg is 0, and `v` is the sigmoid of the logit of pos.
    """
    complete = None not in order
    head = nn.Linear(weight.shape[1], len(Label), bias=bias is not None or not complete, dtype=weight.dtype)
    new = weight.new_zeros(len(Label), weight.shape[1])
    shift = weight.new_zeros(len(Label))
    for label, row in enumerate(order):
        if row is None:
            shift[label] = 0.0 if order == SIGMOID and label == Label.NEG else -float("inf")
            continue
        new[label] = weight[row]
        if bias is not None:
            shift[label] = bias[row]
    head.weight = nn.Parameter(new)
    if head.bias is not None:
        head.bias = nn.Parameter(shift)
    return head
