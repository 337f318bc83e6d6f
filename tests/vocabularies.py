"""Small tokenizers of the genuine kinds, trained by the tests that use them."""

import json
import struct

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, processors, trainers
from tokenizers import pre_tokenizers as pre

TEXTS = [
    "Question:\nJanet's ducks lay 16 eggs per day. How much does she make?\nAnswer:\nLet's think step by step.\n",
    "Step 1: She eats 3 + 4 = 7 eggs. ки\nStep 2: She sells 16 - 7 = 9 eggs. ки\nStep 3: So 9 * $2 = $18. ки",
    "Please reason step by step, and put your final answer within \\boxed{}. system user assistant",
    "What is 2 + 3? 2 + 3 = 5. So the answer is 5. Check: 5 - 3 = 2.",
]
# Where the genuine vocabulary of Mistral has them.
MISTRAL_IDS = {"▁ки": 12902, "▁+": 648, "▁-": 387}


def _begun(tokenizer, token):
    """The same with `token` put before every input."""
    ids = [(token, tokenizer.token_to_id(token))]
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{token} $A", special_tokens=ids)
    return tokenizer


def sentencepiece(*, metaspace=False, places=None, texts=TEXTS):
    """Mistral's and Llama's kind: BPE with byte fallback, spaces as ▁, one of them put before a text, `<s>` before
    an input. The mark comes before each stretch between added tokens, or with `metaspace` before the whole alone.
    `places` moves tokens to given ids, with unused ones in between."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    # SentencePiece learns no pieces across words, and cuts nothing afterwards.
    tokenizer.pre_tokenizer = pre.Split(Regex("\n|(?=▁)|[0-9]"), "merged_with_next")
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=480, show_progress=False, special_tokens=["<unk>", "<s>", "</s>", *bytes_]
    )
    tokenizer.train_from_iterator([text.replace("\n", " ") for text in texts] * 9, trainer)
    parts = json.loads(tokenizer.to_str())
    parts["pre_tokenizer"] = None
    parts["added_tokens"] = [token for token in parts["added_tokens"] if token["id"] < 3]
    if metaspace:
        parts["normalizer"] = None
        parts["pre_tokenizer"] = {
            "type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False
        }  # fmt: skip
    # It does learn runs of spaces, and joins them before anything else.
    parts["model"]["vocab"]["▁▁"] = len(parts["model"]["vocab"])
    parts["model"]["merges"].insert(0, ["▁", "▁"])
    parts["model"]["vocab"] = _moved(parts["model"]["vocab"], places or {})
    tokenizer = Tokenizer.from_str(json.dumps(parts))
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return _begun(tokenizer, "<s>")


def write_sentencepiece(path, tokenizer):
    """Write the tokenizer.model that corresponds to a tokenizer of `sentencepiece`: its pieces, with scores in the
    order of its merges, and what says how it reads spaces."""
    model = json.loads(tokenizer.to_str())["model"]
    scores = {first + second: -number for number, (first, second) in reversed(list(enumerate(model["merges"])))}
    kinds = {"<unk>": 2, "<s>": 3, "</s>": 3}
    pieces = b""
    for text in sorted(model["vocab"], key=model["vocab"].get):
        kind = kinds.get(text, 6 if text.startswith("<0x") else 1)
        score = struct.pack("<f", scores.get(text, 0.0))
        pieces += _message(1, _message(1, text.encode()) + b"\x15" + score + bytes([0x18, kind]))
    # BPE with bytes; no change of characters or of spaces, but one before a text.
    trained, normalized = (
        bytes([0x18, 2, 0x98, 2, 1]),
        _message(1, b"identity") + bytes([0x18, 1, 0x20, 0, 0x28, 1]),
    )
    path.write_bytes(pieces + _message(2, trained) + _message(3, normalized))


def _message(number, content):
    size = len(content)
    return bytes([number << 3 | 2, *([size] if size < 128 else [size & 127 | 128, size >> 7])]) + content


def _moved(vocabulary, places):
    """Tokens at the ids of `places`, those that were there after the last one, and unused ones in the gaps."""
    if not places:
        return vocabulary
    free = iter(range(max(places.values()) + 1, max(places.values()) + 1 + len(vocabulary)))
    moved = dict(places)
    for token, number in vocabulary.items():
        if token not in places:
            moved[token] = next(free) if number in places.values() else number
    taken = set(moved.values())
    return moved | {f"<unused{number}>": number for number in range(max(taken)) if number not in taken}


def pieces_of_qwen(texts, size):
    """Byte-level BPE after Qwen's pattern, on composed characters: so many tokens, learnt from `texts`."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    pattern = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
        r"|\s+(?!\S)|\s+"
    )
    tokenizer.pre_tokenizer = pre.Sequence(
        [pre.Split(Regex(pattern), "isolated"), pre.ByteLevel(False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False, initial_alphabet=pre.ByteLevel.alphabet())
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def byte_level(specials=("<|endoftext|>", "<|im_start|>", "<|im_end|>"), added=("<extra_0>",), bos=None, learnt=()):
    """Qwen's, Llama 3's, ModernBERT's and EuroBERT's kind: byte-level BPE after a pattern, on composed
    characters. `specials` are special tokens, `added` are added without being special, `learnt` are texts that
    it learns whole."""
    tokenizer = pieces_of_qwen([*TEXTS, *learnt * 99], 400)
    tokenizer.add_special_tokens(list(specials))
    tokenizer.add_tokens([AddedToken(token, special=False, normalized=False) for token in added])
    return _begun(tokenizer, bos) if bos else tokenizer


def wordpiece():
    """BERT's kind: lower-cased WordPiece, white space dropped, [CLS] and [SEP] around an input."""
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre.BertPreTokenizer()
    tokenizer.train_from_iterator(
        TEXTS, trainers.WordPieceTrainer(vocab_size=200, show_progress=False, special_tokens=specials)
    )
    ids = [(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ids)
    return tokenizer
