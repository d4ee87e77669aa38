import pytest

from hcp_logscan.engine.run import scan_files
from hcp_logscan.sources.discover import discover

NAMED = {
    "nvidia-smi -L, driver 535": (
        "GPU 3: NVIDIA H100 80GB HBM3 (UUID: GPU-0d0f1c2a-77aa-4c1e-9b1f-0c5a7e2b4d60)",
        "NVIDIA H100 80GB HBM3",
    ),
    "nvidia-smi, driver 535, persistence on": (
        "|   0  NVIDIA H100 80GB HBM3          On  | 00000000:1B:00.0 Off |                    0 |",
        "NVIDIA H100 80GB HBM3",
    ),
    "nvidia-smi, driver 560, wider bus column": (
        "|   0  NVIDIA H200                    On  |   00000000:1B:00.0 Off |                    0 |",
        "NVIDIA H200",
    ),
    "nvidia-smi, driver 470, name cut": (
        "|   7  NVIDIA A100-SXM...  Off  | 00000000:D0:00.0 Off |                    0 |",
        "NVIDIA A100-SXM",
    ),
    "nvidia-smi, driver 450, before names had NVIDIA": (
        "|   0  Tesla V100-SXM2...  On   | 00000000:06:00.0 Off |                    0 |",
        "Tesla V100-SXM2",
    ),
    "nvidia-smi under srun label": (
        "0: |   0  NVIDIA GB200                   On  |   00000008:01:00.0 Off |                    0 |",
        "NVIDIA GB200",
    ),
    "gpustat": (
        "[0] NVIDIA B200 | 66°C, 100 % | 124880 / 183359 MB | root(124866M)",
        "NVIDIA B200",
    ),
    "torch collect_env": ("GPU 0: NVIDIA A100-PCIE-40GB", "NVIDIA A100-PCIE-40GB"),
    "rocm-smi, ROCm 6": (
        "GPU[0]\t\t: Card Series: \t\tAMD Instinct MI300X OAM",
        "AMD Instinct MI300X OAM",
    ),
    "amd-smi static": ("        MARKET_NAME: AMD Instinct MI325X", "AMD Instinct MI325X"),
    "Lightning": (
        "You are using a CUDA device ('NVIDIA H100 80GB HBM3') that has Tensor Cores. To properly"
        " utilize them, you should set `torch.set_float32_matmul_precision('medium' | 'high')`",
        "NVIDIA H100 80GB HBM3",
    ),
    "torchtitan, 2025": (
        "[rank0]:2025-01-23 08:33:12,138 - root - INFO - CUDA capacity: NVIDIA H200 with 139.83GiB"
        " memory",
        "NVIDIA H200",
    ),
    "torchtitan that does not know the GPU": (
        "[rank0]:[titan] 2031-05-01 10:00:02,010 - root - WARNING - Peak flops undefined for: AMD"
        " Instinct MI350X, fallback to A100",
        "AMD Instinct MI350X",
    ),
}
STRANGERS = (
    "GPU 0: 79.11 GiB of which 512.00 MiB is free.",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total"
    " capacity of 79.11 GiB of which 512.00 MiB is free.",
    "|    0   N/A  N/A      4711      C   python                          71034MiB |",
    "  MIG 1g.10gb     Device  0: (UUID: MIG-0d0f1c2a-77aa-4c1e-9b1f-0c5a7e2b4d60)",
    "the room is 21°C, and the GPU 0: hot",
    "disk capacity: 3 TB with 1.2GiB memory map",
)


def rows(tmp_path, *lines):
    (tmp_path / "job.log").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return scan_files(discover(tmp_path))["gpus"]


@pytest.mark.parametrize("case", NAMED)
def test_a_line_that_names_the_gpu_is_read(tmp_path, case):
    line, name = NAMED[case]
    assert rows(tmp_path, line).select("kind", "name").rows() == [("name", name)]


def test_lines_about_gpus_that_name_none_are_left_alone(tmp_path):
    assert rows(tmp_path, *STRANGERS).rows() == []


def test_transformer_engine_tells_an_architecture(tmp_path):
    line = (
        "Running with config={'transformer_engine_version': '2.8.0', 'compute_capability': 'sm103',"
    )
    assert rows(tmp_path, line, line).select("kind", "name", "count").rows() == [
        ("architecture", "sm103", 2)
    ]
