"""The table of what ``wrssl bench`` measures: name, function, bound. A new figure is one line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from wrssl.bench.batch_norm import weighted_over_torch
from wrssl.bench.effort import Effort
from wrssl.bench.memory import can_be_measured
from wrssl.bench.naive import naive_over_ours
from wrssl.bench.pool_size import bytes_per_member, step_memory, step_time
from wrssl.bench.processes import help_seconds, import_over_torch
from wrssl.bench.step_cost import last_layer, rival, whole_network
from wrssl.bench.timing import Figure
from wrssl.weighting import WEIGHTINGS


def always() -> bool:
    """Nothing is needed."""
    return True


def there_is(weights: str) -> bool:
    """Whether a weighting of that name is registered."""
    return weights in WEIGHTINGS.names()


@dataclass(frozen=True)
class Key:
    """One figure.

    Attributes:
        name: its key in the JSON.
        measure: the function.
        says: what it is, for a reader of the table.
        at_most: the bound from above, where there is one.
        at_least: the bound from below, where there is one.
        possible: whether it can be measured here; where not, it is left out.
    """

    name: str
    measure: Callable[[Effort], Figure]
    says: str
    at_most: float | None = None
    at_least: float | None = None
    possible: Callable[[], bool] = always

    def bound(self) -> str:
        """The bound as text."""
        if self.at_most is not None:
            return f"≤ {self.at_most:g}"
        return "" if self.at_least is None else f"≥ {self.at_least:g}"

    def holds(self, figure: Figure) -> bool | None:
        """Whether the median is within the bound; None where there is no bound."""
        if self.at_most is not None:
            return figure.median <= self.at_most
        return None if self.at_least is None else figure.median >= self.at_least


def _rival(name: str, weights: str, bn: str, says: str) -> Key:
    return Key(name, partial(rival, weights=weights, bn=bn), says, possible=partial(there_is, weights))


_TABLE = [
    Key("wr_over_base_vat", partial(last_layer, method="vat"), "step of wr-cluster + WBN over plain VAT", 1.10),
    Key("wr_over_base_pl", partial(last_layer, method="pl"), "the same over plain Pseudo-Label", 1.15),
    Key("wr_over_base_pi", partial(last_layer, method="pi"), "the same over the plain Π-Model", 1.15),
    Key("wr_over_base_mt", partial(last_layer, method="mt"), "the same over plain Mean Teacher", 1.15),
    Key(
        "wr_over_base_network",
        partial(whole_network, blocks=3, J=3, P=5, L=5),
        "whole network, J=3, P=5, L=5, over plain VAT",
        3.5,
    ),
    Key(
        "onestep_over_base_network",
        partial(whole_network, blocks=5, J=1, P=0, L=1),
        "whole network, J=1, P=0, L=1, over plain VAT",
        2.2,
    ),
    Key(
        "wr_over_base_network_L1",
        partial(whole_network, blocks=2, J=3, P=5, L=1),
        "whole network, J=3, P=5, L=1, over plain VAT",
    ),
    _rival("l2rw_over_base", "l2rw", "batch", "step of l2rw over plain VAT"),
    _rival("mwn_over_base", "mwn", "batch", "step of mwn over plain VAT"),
    _rival("ds3l_over_base", "ds3l", "batch", "step of ds3l over plain VAT"),
    _rival("wrdefault_over_base_vat", "wr", "weighted", "step of wr + WBN over plain VAT"),
    Key("wbn_over_bn", weighted_over_torch, "weighted over plain batch norm, forward and backward", 1.25),
    Key("step_time_1e7_over_1e4", step_time, "step with a pool of 10⁷ over one of 10⁴ members", 1.10),
    Key(
        "step_memory_1e7_over_1e4",
        step_memory,
        "growth of peak memory during 200 steps, 10⁷ over 10⁴ members",
        1.10,
        possible=can_be_measured,
    ),
    Key(
        "bytes_per_member",
        bytes_per_member,
        "resident bytes per member beyond the data, at 10⁷ members",
        24.0,
        possible=can_be_measured,
    ),
    Key("naive_over_ours_vat", naive_over_ours, "step of a plain PyTorch loop over the library's, VAT", at_least=2.0),
    Key("import_seconds_over_torch", import_over_torch, "import wrssl and a layer over import torch", 1.15),
    Key("help_seconds", help_seconds, "seconds of python -m wrssl --help", 0.5),
]


def known_keys() -> dict[str, Key]:
    """Those that can be measured here, by name, in the order in which they are measured."""
    return {key.name: key for key in _TABLE if key.possible()}
