"""NVIDIA GPUs: Triton kernels on torch tensors. Only what imports this folder needs torch and Triton."""
