"""A support vector machine on real data, with its certificate: the ten lines of the README.

python examples/quickstart.py
"""

from parablock import KernelSVC
from parablock.datasets import load_covtype_sample

X_train, y_train, X_test, y_test = load_covtype_sample()
model = KernelSVC(C=32, gamma=32, random_state=0)
model.fit(X_train[:10_000], y_train[:10_000])

print(f"test accuracy   {model.score(X_test, y_test):.2%}")
print(f"support vectors {len(model.support_):,} of 10,000 rows")
print(f"dual objective  {model.dual_objective_:.3f}")
print(f"duality gap     {model.duality_gap_:.3f}")
