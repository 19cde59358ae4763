"""What is below a program: boards, kernels, file systems, prices, and `Stack`, all of it."""
