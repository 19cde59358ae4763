"""A Parquet file that ends the process in which Polars reads it."""

from __future__ import annotations

import base64
import zlib

FATAL = zlib.decompress(base64.b64decode(
    "eNp1UcFOwkAQ3RbSePDAodN0kx560AYiwbKIpd4WQpBotG1MjBeTYlkgQWoognryc/wIv8IvcnbLwYsvm3k7M++9w2"
    "7EkzZUwQf/GgwghGikhL7nyp6BgAlmEwBqKDRKgaHplSMCVdolRo3aWgrEMqxPDY+XeAeEOlYC55a067R5WV3n+QZ0"
    "NBzrKEYtdajj/WjO/xHWtwYmkQPDO0AyCabahzxJbu8viqf59Dm1v7RTic4DRwxl6W2xf4v3vRpdcV7wgeKYn0S43+"
    "3kfMz57K9OlUDuP9RclRFXK7SjuT/mfcVDmYdQOZxHd2gKy3tcWgexzJuV/WjIiX0T5ct0Xbj1l/fNPF813O10XSzy"
    "lcta7Zbv1ievi2XmBiL02STrCJGxQIgey9pnLOilfpiysCsEE0E6zULWoI6Dr/uIvxbhT/4CV9Vd3g=="
))  # fmt: skip
"""Three numbers. One byte of a page's header is changed: Polars 2.1 allocates 2^61 bytes for it."""
