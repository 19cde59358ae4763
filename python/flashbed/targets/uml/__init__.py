"""User-mode Linux (kernel/uml/README.md).

`uml_target` is the target. `uml_kernel` and `programs_kernel` build kernels. `host_process` places
the kernel's process on the host. `flashbed exec` loads all but the target: polars takes 0.3 s.
"""
