"""`tilefarm` whose devices are reached through proxies: PROXIES says which, as a JSON object."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace

from tilefarm.lease import Lease

from device_server.device.client import DeviceClient
from driver import cli
from driver.farm import run_resources
from driver.farm.leases import Leases


class ProxiedLeases(Leases):
    """Leases whose devices are reached at another address, where `through` has one by name."""

    through: dict[str, str]

    def connect(self, lease: Lease) -> DeviceClient:
        address = self.through.get(lease.device.name, lease.device.address)
        return super().connect(replace(lease, device=replace(lease.device, address=address)))


if __name__ == "__main__":
    ProxiedLeases.through = json.loads(os.environ["PROXIES"])
    setattr(run_resources, "Leases", ProxiedLeases)  # noqa: B010
    sys.exit(cli.main())
