# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What nvidia-smi says of MIG, as NVIDIA's 535.309.01 and 550.163.01 were recorded on mocked drivers, and a driver that says it."""

from __future__ import annotations

from ansible_collections.gpuops.sharing.plugins.module_utils._command import Answer
from ansible_collections.gpuops.sharing.plugins.module_utils._driver.nvidia_smi import NvidiaSmiDriver
from ansible_collections.gpuops.sharing.plugins.module_utils._instance import (
    ComputeInstance,
    GpuInstance,
    Placement,
    Profile,
)
from ansible_collections.gpuops.sharing.tests.unit.plugins.module_utils.fakes import A100, commands

PROFILES = """\
+-----------------------------------------------------------------------------+
| GPU instance profiles:                                                      |
| GPU   Name             ID    Instances   Memory     P2P    SM    DEC   ENC  |
|                              Free/Total   GiB              CE    JPEG  OFA  |
|=============================================================================|
|   0  MIG 1g.5gb        19     4/7        4.75       No     14     0     0   |
|                                                             1     0     0   |
+-----------------------------------------------------------------------------+
|   0  MIG 1g.5gb+me     20     1/1        4.75       No     14     1     0   |
|                                                             1     1     1   |
+-----------------------------------------------------------------------------+
|   0  MIG 3g.20gb        9     1/2        19.62      No     42     2     0   |
|                                                             3     0     0   |
+-----------------------------------------------------------------------------+
"""
PLACEMENTS = """\
GPU  0 Profile ID 19 Placements: {0,1,2,3,4,5,6}:1
GPU  0 Profile ID 20 Placements: {0,1,2,3,4,5,6}:1
GPU  0 Profile ID  9 Placements: {0,4}:4
"""
EVERYWHERE = tuple(Placement(start, 1) for start in range(7))
KNOWN = (
    Profile(19, "1g.5gb", 1, 4864, 7, EVERYWHERE),
    Profile(20, "1g.5gb+me", 1, 4864, 1, EVERYWHERE),
    Profile(9, "3g.20gb", 3, 20091, 2, (Placement(0, 4), Placement(4, 4))),
)
INSTANCES = """\
+-------------------------------------------------------+
| GPU instances:                                        |
| GPU   Name             Profile  Instance   Placement  |
|                          ID       ID       Start:Size |
|=======================================================|
|   0  MIG 1g.5gb          19       13          6:1     |
+-------------------------------------------------------+
|   0  MIG 2g.10gb         14        5          4:2     |
+-------------------------------------------------------+
"""
COMPUTE = """\
+--------------------------------------------------------------------+
| Compute instances:                                                 |
| GPU     GPU       Name             Profile   Instance   Placement  |
|       Instance                       ID        ID       Start:Size |
|         ID                                                         |
|====================================================================|
|   0     13       MIG 1g.5gb           0         0          0:1     |
+--------------------------------------------------------------------+
|   0      5       MIG 1c.2g.10gb       0         0          1:1     |
+--------------------------------------------------------------------+
|   0      5       MIG 1c.2g.10gb       0         1          0:1     |
+--------------------------------------------------------------------+
"""
DETAIL = """\
        <mig_devices>
        <mig_device>
            <index>0</index>
            <gpu_instance_id>5</gpu_instance_id>
            <compute_instance_id>0</compute_instance_id>
            <device_attributes>
                <shared>
                    <multiprocessor_count>28</multiprocessor_count>
                </shared>
            </device_attributes>
        </mig_device>
        <mig_device>
            <index>1</index>
            <gpu_instance_id>5</gpu_instance_id>
            <compute_instance_id>1</compute_instance_id>
        </mig_device>
        <mig_device>
            <index>2</index>
            <gpu_instance_id>13</gpu_instance_id>
            <compute_instance_id>0</compute_instance_id>
        </mig_device>
        </mig_devices>
        <processes>
            <process_info>
                <gpu_instance_id>5</gpu_instance_id>
                <compute_instance_id>1</compute_instance_id>
                <pid>2298</pid>
                <type>C</type>
                <process_name>/usr/bin/python3</process_name>
                <used_memory>500 MiB</used_memory>
            </process_info>
            <process_info>
                <gpu_instance_id>5</gpu_instance_id>
                <compute_instance_id>1</compute_instance_id>
                <pid>17</pid>
            </process_info>
            <process_info>
                <gpu_instance_id>N/A</gpu_instance_id>
                <compute_instance_id>N/A</compute_instance_id>
                <pid>18</pid>
            </process_info>
        </processes>
"""
DEVICES = """\
GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-283ac4e4-651c-54fd-a922-7809abbd0253)
  MIG 1c.2g.10gb  Device  0: (UUID: MIG-a585a148-e88f-542e-86e5-259c7a070df8)
  MIG 1c.2g.10gb  Device  1: (UUID: MIG-a585a149-e88f-542e-86e5-259c7a070df9)
  MIG 1g.5gb      Device  2: (UUID: MIG-74882b04-987f-508d-a6fa-466e2a1ef94f)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-283ac3e4-651c-534a-a922-7909abbd0be0)
  MIG 1g.5gb      Device  0: (UUID: MIG-00000000-987f-508d-a6fa-466e2a1ef94f)
"""
THERE = (
    GpuInstance(
        5,
        "2g.10gb",
        Placement(4, 2),
        (
            ComputeInstance(0, "1c.2g.10gb", Placement(1, 1), "MIG-a585a148-e88f-542e-86e5-259c7a070df8"),
            ComputeInstance(1, "1c.2g.10gb", Placement(0, 1), "MIG-a585a149-e88f-542e-86e5-259c7a070df9", (17, 2298)),
        ),
    ),
    GpuInstance(
        13,
        "1g.5gb",
        Placement(6, 1),
        (ComputeInstance(0, "1g.5gb", Placement(0, 1), "MIG-74882b04-987f-508d-a6fa-466e2a1ef94f"),),
    ),
)
SAME = {"-i 0 --query-gpu=uuid,index --format=csv,noheader": Answer(0, f"{A100.uuid}, 0\n", "")}
NOTHING = Answer(6, "No GPU instances found: Not Found\n", "")
LOST = "Unable to determine the device handle for gpu 1: GPU is lost.  Reboot the system to recover this GPU\n\n"


def driver(**answers: Answer | str) -> NvidiaSmiDriver:
    """nvidia-smi that answers by the option it is asked with."""
    arguments = {
        "mode": f"-i {A100.uuid} -mig 1",
        "off": f"-i {A100.uuid} -mig 0",
        "read": "-i 0 --query-gpu=uuid,mig.mode.current,mig.mode.pending --format=csv,noheader",
        "lgip": "mig -i 0 -lgip",
        "lgipp": "mig -i 0 -lgipp",
        "lgi": "mig -i 0 -lgi",
        "lci": "mig -i 0 -lci",
        "lcip": f"mig -i {A100.uuid} -gi 5 -lcip",
        "cgi": f"mig -i {A100.uuid} -cgi 9:4",
        "lcipp": f"mig -i {A100.uuid} -gi 5 -lcipp",
        "cci": f"mig -i {A100.uuid} -cci 2 -gi 5",
        "cci at": f"mig -i {A100.uuid} -cci 0:2 -gi 5",
        "lost": "mig -i 0 -dgi -gi 5",
        "dgi": f"mig -i {A100.uuid} -dgi -gi 5",
        "dci": f"mig -i {A100.uuid} -dci -gi 5 -ci 1",
        "index": "-i 0 --query-gpu=uuid,index --format=csv,noheader",
        "detail": "-i 0 -q -x",
        "devices": "-L",
    }
    table = {
        arguments[name]: Answer(0, answer, "") if isinstance(answer, str) else answer
        for name, answer in answers.items()
    }
    return NvidiaSmiDriver(commands({**SAME, **table}), "/usr/bin/nvidia-smi")
