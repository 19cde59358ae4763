"""User-mode Linux (docs/models/uml.md).

`uml_target` is the target, `uml_kernel` and `programs_kernel` make its kernels, `host_process` is
what its process gets from the host. `flashbed exec` needs the last three and not the target, whose
tables take 0.3 s to load.
"""
