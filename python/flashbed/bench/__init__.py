"""What holds simulator, kernels and boards against each other, and what traces them."""
