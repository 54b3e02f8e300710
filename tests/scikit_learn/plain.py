"""Our machines as they are."""

from parablock import KernelRidge
from parablock import KernelSVC as SVC
from parablock import KernelSVR as SVR

__all__ = ["SVC", "SVR", "KernelRidge"]
