"""Recommendation models and CANDLE Uno: lookups or feature towers below, dense layers above."""

from topox_core.strategy.operators import Blueprint, OperatorGraph

# TopoOpt's scripts look up 100 rows of each table for a sample.
BAG = 100


def dlrm(servers: int, configuration: int, element_bytes: int = 8) -> OperatorGraph:
    """Return DLRM as row ``configuration`` of TOPO-X Table II has it: 1 is 128 servers, 2 is 16.

    There are 64 or 16 tables whatever the number of servers. ``element_bytes`` is what an element
    of a looked-up vector counts on the network: 8 as FlexNet released it (the type of the indices),
    4 for FP32.
    """
    tables, dimension, bottom, top, share = {
        1: (64, 128, 2048, 4096, 512),
        2: (16, 256, 1024, 2048, 1024),
    }[configuration]
    plan = Blueprint(
        {1: "dlrm-128", 2: "dlrm-16"}[configuration],
        f"DLRM (TOPO-X Table II, No. {configuration})",
        "sizes: TOPO-X Table II, layer counts: TopoOpt's scripts; A100 times published with TopoOpt (NSDI 2023)",
        servers,
        share,
        {1: "dlrm128", 2: "dlrm16"}[configuration],
    )
    return dlrm_layers(plan, tables, dimension, bottom, top, element_bytes, "Concat_1")


def dlrm_layers(
    plan: Blueprint,
    tables: int,
    dimension: int,
    bottom: int,
    top: int,
    element_bytes: int,
    concat: str = "",
) -> OperatorGraph:
    """Return a DLRM of tables of 10^7 rows, 7 bottom layers and 16 top layers.

    Parameters
    ----------
    dimension, bottom, top
        Elements of a row of a table, and width of the layers below and above.
    concat
        Under which name the concatenation was measured.
    """
    below: tuple[str, ...] = ()
    for i in range(7):
        below = (plan.dense(f"bottom{i}", bottom, bottom, below),)
    lookups = tuple(
        plan.embedding(f"table{i}", 10_000_000, dimension, BAG, element_bytes)
        for i in range(tables)
    )
    width = bottom + tables * dimension
    below = (plan.moving("concat", "concat", width, width, below + lookups, concat),)
    for i, (inputs, outputs) in enumerate([(width, top), *[(top, top)] * 14, (top, 1)]):
        below = (plan.dense(f"top{i}", inputs, outputs, below),)
    return plan.graph()


def ncf(servers: int) -> OperatorGraph:
    """Return neural collaborative filtering (WWW 2017) at the size of TopoOpt's 128-server runs.

    32 user and 32 item tables of a million rows, each once with 64 elements (matrix factorisation)
    and once with 128 (multilayer perceptron); 8 dense layers of 4096; users and items are
    multiplied element by element in the first branch, and both branches meet before the last layer.
    """
    plan = Blueprint(
        "ncf",
        "NCF",
        "structure: He et al., WWW 2017; sizes: TopoOpt's 128-server runs (NSDI 2023)",
        servers,
        4 * 128,
    )
    pairs, factors, dimension, width = 32, 64, 128, 4096
    vectors = {
        (branch, side): tuple(
            plan.embedding(f"{branch}_{side}{i}", 1_000_000, size, 1, 4) for i in range(pairs)
        )
        for branch, size in (("mf", factors), ("mlp", dimension))
        for side in ("user", "item")
    }
    product = plan.moving(
        "product",
        "multiply",
        2 * pairs * factors,
        pairs * factors,
        vectors["mf", "user"] + vectors["mf", "item"],
    )
    inputs = 2 * pairs * dimension
    below = plan.moving(
        "concat", "concat", inputs, inputs, vectors["mlp", "user"] + vectors["mlp", "item"]
    )
    for i in range(8):
        below = plan.dense(f"dense{i}", inputs if i == 0 else width, width, (below,))
    joined = width + pairs * factors
    below = plan.moving("join", "concat", joined, joined, (below, product))
    plan.dense("score", joined, 1, (below,))
    return plan.graph()


def candle(servers: int, width: int = 4096, feature_layers: int = 12) -> OperatorGraph:
    """Return CANDLE Uno as TopoOpt runs it: feature towers, two doses, dense layers above.

    The towers read cell expression (942), descriptors (5270) and fingerprints (2048) of two drugs.
    The 128-server variant has 16 feature layers of 16384.
    """
    small = width == 4096
    plan = Blueprint(
        "candle-16" if small else "candle-128",
        "CANDLE Uno",
        "towers: CANDLE Uno benchmark; sizes and A100 times: TopoOpt (NSDI 2023)",
        servers,
        4 * 256,
        "candle16" if small else "",
    )
    tops: list[str] = []
    for name, features in (
        ("cell", 942),
        ("drug1.descriptors", 5270),
        ("drug1.fingerprints", 2048),
        ("drug2.descriptors", 5270),
        ("drug2.fingerprints", 2048),
    ):
        below: tuple[str, ...] = ()
        for i in range(feature_layers):
            below = (plan.dense(f"{name}{i}", features if i == 0 else width, width, below),)
        tops += below
    joined = 5 * width + 2
    last = plan.moving("concat", "concat", joined, joined, tuple(tops), "Concat_1")
    for i in range(8):
        last = plan.dense(f"dense{i}", joined if i == 0 else width, width, (last,))
    last = plan.dense("response", width, 1, (last,))
    plan.dense("out", 1, 1, (last,))
    return plan.graph()
