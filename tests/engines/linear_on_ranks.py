"""Linear machines of rows that are spread over ranks, C=inf among them; the first rank prints what it has as JSON."""

import json

import numpy as np
from mpi4py import MPI

from parablock import KernelSVC
from tests.small_problems import features

comm = MPI.COMM_WORLD
own = np.array_split(np.arange(len(features())), comm.Get_size())[comm.Get_rank()]
X, classes = features()[own], own % 3
separable = features() @ [1.0, -2.0, 0.5, 0.0] > 0.1

three = KernelSVC(kernel="linear", engine="mpi", class_weight={0: 2.0}).fit(X, classes)
hard = KernelSVC(C=np.inf, kernel="linear", engine="mpi", tol=1e-6).fit(X, separable[own])
if comm.Get_rank() == 0:
    names = ("n_support_", "class_weight_", "coef_", "support_")
    told = {name: getattr(three, name).tolist() for name in names}
    print(json.dumps({**told, "shape_fit_": three.shape_fit_, "hard": hard.coef_.tolist()}))
