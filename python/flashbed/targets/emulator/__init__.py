"""The emulated board (docs/models/emulator.md).

`emulator_target` is the target, `machine` is QEMU's command line, `debian_kernel` and `image` are
what it boots.
"""
