"""All models by name, each buildable for any number of servers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from topox_core.errors import InputError, shown, unknown
from topox_core.strategy.convolutional import resnet50, vgg16, vgg16_measured
from topox_core.strategy.operators import OperatorGraph
from topox_core.strategy.recommenders import candle, dlrm, ncf
from topox_core.strategy.transformers import bert, language_model
from topox_core.training.shape import SHAPES, Shape


@dataclass(frozen=True)
class Model:
    """One entry of the catalogue.

    Attributes
    ----------
    servers
        The number of servers it was published or is commonly run on.
    build
        Servers to operator graph.
    shape
        Of a language model, whose parallel plans can be enumerated; else None.
    batch
        Sequences of an iteration of its plans if nobody says otherwise.
    """

    name: str
    meaning: str
    servers: int
    build: Callable[[int], OperatorGraph]
    shape: Shape | None = None
    batch: int = 0


MODELS: dict[str, Model] = {
    model.name: model
    for model in (
        Model(
            "dlrm-16",
            "DLRM, TOPO-X Table II No. 2: 16 tables of 10^7 x 256, 23 dense layers (measured)",
            16,
            partial(dlrm, configuration=2),
        ),
        Model(
            "dlrm-128",
            "DLRM, TOPO-X Table II No. 1: 64 tables of 10^7 x 128, 23 dense layers (measured)",
            128,
            partial(dlrm, configuration=1),
        ),
        Model(
            "bert-16",
            "BERT, 6 layers of 768, sequences of 256 (measured)",
            16,
            partial(bert, size=16),
        ),
        Model(
            "bert-128",
            "BERT, 12 layers of 1024, sequences of 64 (roofline)",
            128,
            partial(bert, size=128),
        ),
        Model(
            "candle-16",
            "CANDLE Uno: five towers of 12 layers, 11 operators on top, 4096 wide (measured)",
            16,
            candle,
        ),
        Model(
            "candle-128",
            "CANDLE Uno: five towers of 16 layers, 11 operators on top, 16384 wide (roofline)",
            128,
            partial(candle, width=16_384, feature_layers=16),
        ),
        Model(
            "vgg16", "VGG16, images of 224 x 224 (roofline, measured where shapes agree)", 16, vgg16
        ),
        Model(
            "vgg16-measured",
            "VGG16 with the operator times TopoOpt's simulator used (measured)",
            16,
            vgg16_measured,
        ),
        Model("resnet50", "ResNet50, images of 224 x 224 (roofline)", 128, resnet50),
        Model(
            "ncf", "Neural collaborative filtering, 128 tables of 10^6 rows (roofline)", 128, ncf
        ),
        Model(
            "llama3-8b",
            "Llama 3 8B (closed form)",
            16,
            partial(language_model, name="llama3-8b"),
            SHAPES["llama3-8b"],
            512,
        ),
        Model(
            "llama3-70b",
            "Llama 3 70B (closed form)",
            64,
            partial(language_model, name="llama3-70b"),
            SHAPES["llama3-70b"],
            1024,
        ),
        Model(
            "llama3-405b",
            "Llama 3 405B (closed form)",
            512,
            partial(language_model, name="llama3-405b"),
            SHAPES["llama3-405b"],
            2048,
        ),
        Model(
            "mixtral-8x7b",
            "Mixture of experts, 8 experts a layer, 2 for a token (closed form)",
            32,
            partial(language_model, name="mixtral-8x7b"),
            SHAPES["mixtral-8x7b"],
            512,
        ),
    )
}


# Short names for the variants that were measured on 16 servers.
ALIASES = {"dlrm": "dlrm-16", "bert": "bert-16", "candle": "candle-16", "moe": "mixtral-8x7b"}


def named(name: str) -> Model:
    """Return a model by name.

    Raises
    ------
    InputError
        If there is none of that name; the nearest one is told.
    """
    name = ALIASES.get(name, name)
    if name not in MODELS:
        raise InputError(
            f"{shown(name)} is an {unknown(name, [*MODELS, *ALIASES], 'model')}", field="model"
        )
    return MODELS[name]
