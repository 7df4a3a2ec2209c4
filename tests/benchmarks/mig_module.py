# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Cut eight A100 into 56 instances as nvidia_mig does, without Ansible: read, plan, apply, read back, compare; then print what was read of each."""

from __future__ import annotations

import contextlib
import json
import typing as t

from ansible_collections.gpuops.sharing.plugins.module_utils._driver.choice import open_driver
from ansible_collections.gpuops.sharing.plugins.module_utils._mig import layout
from ansible_collections.gpuops.sharing.plugins.module_utils._mig.card import Card
from ansible_collections.gpuops.sharing.plugins.module_utils._mig.reconcile import Host, Options
from ansible_collections.gpuops.sharing.plugins.plugin_utils import _standalone

WISH = {"gpus": "all", "instances": [{"profile": "1g.5gb", "count": 7}]}


def main() -> None:
    commands = _standalone.commands(30)
    with contextlib.closing(open_driver("nvml", commands)) as driver:
        host = Host(driver, commands, Options())
        before = host.read(layout.choose(layout.parse([WISH]), driver.gpus()))
        after, _done = host.apply(before, host.steps(before, host.plan(before)))
    print(json.dumps({reading.gpu.index: table(reading.card) for reading in after}))


def table(card: Card | None) -> list[list[t.Any]]:
    """Return the instances: ids of the GPU and the compute instance, place, UUID."""
    instances = card.instances if card else ()
    return sorted(
        [one.id, part.id, list(one.placement), part.uuid] for one in instances for part in one.compute_instances
    )


if __name__ == "__main__":
    main()
