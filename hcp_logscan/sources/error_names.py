"""Names of torchelastic's error files, and what they begin with.

torchrun names ``<log dir>/<run id>_<8 random characters>/attempt_<k>/<LOCAL rank>/error.json`` to
each worker (PyTorch ``torch/distributed/elastic/multiprocessing/api.py``, 1.9 to 2026 main), TorchX
``<app>/<role>/<replica>/error.json`` to the launcher (``torchx/schedulers/local_scheduler.py``);
whoever sets ``TORCHELASTIC_ERROR_FILE`` may call it anything. Many programs write an `error.json`:
outside of torchrun's folders its content has to tell.
"""

from __future__ import annotations

import re
from typing import Final

_NAME: Final = re.compile(
    r"(?:^|/)(?:[\w.-]{1,200}[_.-])?errors?(?:[_.-][\w.-]{1,200})?\.json(?:\.(?:gz|zst|xz|bz2))?$",
    re.ASCII | re.IGNORECASE,
)
_OF_TORCHRUN: Final = re.compile(
    r"(?:^|/)attempt_\d{1,6}/\d{1,6}/error\.json(?:\.(?:gz|zst|xz|bz2))?$"
)
_SHAPE: Final = re.compile(
    rb'\s*+\{\s*+"message"\s*+:\s*+(?:\{\s*+"message"\s*+:\s*+"(?:[^"\\]|\\.)*+"\s*+,\s*+"extraInfo"'
    rb'|"(?:[^"\\]|\\.)*+"\s*+,\s*+"timestamp")\s*+:',
    re.DOTALL,
)


def is_error_name(name: str) -> bool:
    """Whether a path may be that of an error file.

    >>> is_error_name("none_a1b2c3d4/attempt_0/3/error.json"), is_error_name("train.json")
    (True, False)
    """
    return _NAME.search(name) is not None


def is_error_file(name: str, head: bytes) -> bool:
    """Whether a file of such a name is one, damaged or not, by its place or its first bytes.

    >>> is_error_file("out/error.json", b'{"message": {"message": "a", "extraInfo": {}}}')
    True
    >>> is_error_file("api/error.json", b'{"message": "not found"}')
    False
    """
    return _OF_TORCHRUN.search(name) is not None or _SHAPE.match(head) is not None
