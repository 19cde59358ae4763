"""Parameter pages of a chip, made field by field, each with a right checksum."""

from __future__ import annotations

__all__ = ["JEDEC_FIELDS", "jedec_page", "onfi_page", "with_crc"]

JEDEC_FIELDS: dict[str, tuple[int, int, int]] = {
    "revision": (4, 2, 0b100), "features": (6, 2, 0), "commands": (8, 1, 0b10),
    "page_bytes": (80, 4, 16_384), "oob_bytes": (84, 2, 1_280),
    "pages_per_block": (92, 4, 256), "blocks": (96, 4, 2_048), "dies": (100, 1, 2),
    "bits_per_cell": (102, 1, 2), "plane_bits": (104, 1, 1), "async_sdr": (144, 2, 0b11111),
    "t_prog": (153, 2, 5_000), "t_bers": (155, 2, 10_000), "t_r": (157, 2, 100),
    "t_ccs": (161, 2, 300), "ecc_bits": (211, 1, 40), "ecc_exponent": (212, 1, 10),
    "bad_blocks": (213, 2, 76), "endurance": (215, 1, 3), "endurance_tens": (216, 1, 3),
}  # fmt: skip
"""Field of a JEDEC page -> its place, its bytes, its usual value (a part of our invention)."""


def with_crc(page: bytes) -> bytes:
    """The page with its last two bytes the checksum of those before."""
    crc = 0x4F4E
    for byte in page[:-2]:
        crc ^= byte << 8
        for _ in range(8):
            crc = ((crc << 1) ^ 0x8005 if crc & 0x8000 else crc << 1) & 0xFFFF
    return page[:-2] + crc.to_bytes(2, "little")


def onfi_page(*more: tuple[int, int, int]) -> bytes:
    """Micron's MT29F2G08ABAEA; `more` are place, bytes and value of other fields."""
    page = bytearray(256)
    page[0:4] = b"ONFI"
    page[32:44], page[44:64] = b"MICRON      ", b"MT29F2G08ABAEAWP    "
    for at, length, value in (
        (80, 4, 2048), (84, 2, 64), (92, 4, 64), (96, 4, 2048), (100, 1, 1), (103, 2, 40),
        (105, 1, 1), (106, 1, 5), (112, 1, 4), (113, 1, 1), (129, 2, 0b111111), (133, 2, 600),
        (135, 2, 3000), (137, 2, 25), (139, 2, 200), *more,
    ):  # fmt: skip
        page[at : at + length] = value.to_bytes(length, "little")
    return with_crc(bytes(page))


def jedec_page(**fields: int) -> bytes:
    """An MLC part of 2 dies; `fields` replace its numbers."""
    page = bytearray(512)
    page[0:4] = b"JESD"
    page[32:44], page[44:64] = b"TOSHIBA     ", b"TH58TEG7DDKTA20     "
    for name, (at, length, usual) in JEDEC_FIELDS.items():
        page[at : at + length] = fields.get(name, usual).to_bytes(length, "little")
    return with_crc(bytes(page))
