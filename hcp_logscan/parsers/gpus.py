"""Lines that name the GPU: what job scripts and trainers print about their devices.

Written from the output of ``nvidia-smi`` (drivers 450 to 580), ``nvidia-smi -L``, gpustat 1.x,
``rocm-smi --showproductname`` (ROCm 5 and 6), ``amd-smi static`` (ROCm 6 and 7), PyTorch
``torch/utils/collect_env.py``, PyTorch Lightning ``accelerators/cuda.py`` (1.9 to 2.6), torchtitan
``torchtitan/components/metrics.py`` and ``tools/utils.py`` (2024 to 2026), and from Transformer
Engine's debug dict (1.8 to 2.18), whose ``compute_capability`` is an architecture, not a GPU.
Megatron and Megatron-Bridge never name it.
"""

from __future__ import annotations

from hcp_logscan.parsers.base import LineParser

_NAME = r"[A-Za-z][A-Za-z0-9 ()+._/-]{1,79}"


def _device(name: str, needles: tuple[str, ...], pattern: str, sample: str) -> LineParser:
    return LineParser(
        name=name,
        table="gpus",
        needles=needles,
        pattern=pattern,
        constants={"kind": "name"},
        sample=sample,
        drift=False,
    )


PARSERS = (
    _device(
        "nvidia-smi-list",
        ("(UUID: GPU-",),
        rf"GPU [0-9]+: (?P<name>{_NAME}?) \(UUID: GPU-",
        "GPU 0: NVIDIA H200 (UUID: GPU-0d0f1c2a-77aa-4c1e-9b1f-0c5a7e2b4d60)",
    ),
    _device(
        "nvidia-smi-table",
        (".0 Off |", ".0 On  |"),
        rf"\|\s+[0-9]+\s+(?P<name>{_NAME}?)(?:\.\.\.)?\s+(?:On|Off|N/A)\s*"
        r"\|\s*[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.0 (?:Off|On )",
        "|   0  NVIDIA H100 80GB HBM3          On  |   00000000:1B:00.0 Off |                    0"
        " |",
    ),
    _device(
        "gpustat",
        ("°C, ",),
        rf"\[[0-9]+\] (?P<name>{_NAME}?)\s*\|\s*[0-9]+°C,",
        "[0] NVIDIA B200 | 66°C, 100 % | 124880 / 183359 MB | root(124866M)",
    ),
    _device(
        "collect-env",
        ("GPU 0: ",),
        rf"^GPU 0: (?P<name>{_NAME})$",
        "GPU 0: NVIDIA H100 80GB HBM3",
    ),
    _device(
        "rocm-smi",
        ("Card series:", "Card Series:"),
        rf"GPU\[[0-9]+\]\s*: Card [sS]eries:\s*(?P<name>{_NAME})",
        "GPU[0]\t\t: Card series: \t\tAMD Instinct MI300X OAM",
    ),
    _device(
        "amd-smi",
        ("MARKET_NAME:",),
        rf"^\s*MARKET_NAME: (?P<name>{_NAME})",
        "        MARKET_NAME: AMD Instinct MI300X",
    ),
    _device(
        "lightning-device",
        ("You are using a CUDA device ('",),
        rf"You are using a CUDA device \('(?P<name>{_NAME})'\)",
        "You are using a CUDA device ('NVIDIA A100-SXM4-80GB') that has Tensor Cores.",
    ),
    _device(
        "torchtitan-device",
        (" capacity: ",),
        rf"[A-Za-z]+ capacity: (?P<name>{_NAME}) with [0-9.]+GiB memory",
        "[titan] 2026-03-01 09:14:20,123 - root - INFO - CUDA capacity: NVIDIA H100 80GB HBM3 with"
        " 79.11GiB memory",
    ),
    _device(
        "torchtitan-peak",
        ("Peak flops undefined for",),
        rf"Peak flops undefined for: ?(?P<name>{_NAME}), fallback",
        "[titan] 2026-03-01 09:14:20,123 - root - WARNING - Peak flops undefined for: AMD Instinct"
        " MI350X, fallback to A100",
    ),
    LineParser(
        name="te-capability",
        table="gpus",
        needles=("'compute_capability': '",),
        pattern=r"'compute_capability': '(?P<name>sm[0-9]{2,3})'",
        constants={"kind": "architecture"},
        sample="DEBUG:DotProductAttention:Running with config={'transformer_engine_version':"
        " '2.8.0', 'compute_capability': 'sm90', 'qkv_layout': 'sbhd_sbhd_sbhd'}",
        drift=False,
    ),
)
