"""Data: scenarios made from the user's own arrays, or from named public sets mixed with foreign images."""

from __future__ import annotations

from wrssl.data.load import find_scenario, list_scenarios, load_scenario
from wrssl.data.prepare import prepare
from wrssl.data.scenario import Scenario

__all__ = ["Scenario", "find_scenario", "list_scenarios", "load_scenario", "prepare"]
