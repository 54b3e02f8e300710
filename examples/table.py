"""A table with categories and missing values, with nothing to choose: predictions, what they are worth, and intervals.

python examples/table.py
"""

import numpy as np
from sklearn.datasets import load_diabetes

from parablock import AutoKernelRegressor

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X["sex"] = np.where(X["sex"] == 1, "one", "the other")  # a column of text
X.loc[::10, "bmi"] = np.nan
X_train, y_train, X_test, y_test = X[:350], y[:350], X[350:], y[350:]

model = AutoKernelRegressor(random_state=0).fit(X_train, y_train)
lower, upper = model.predict_interval(X_test, coverage=0.8)
inside = (lower <= y_test) & (y_test <= upper)

print(f"R squared      {model.score(X_test, y_test):.2f}, expected {model.score_estimate_:.2f}")
print(f"80% intervals  {inside.mean():.0%} inside, {np.mean(upper - lower):.0f} wide of {np.ptp(y_test):.0f}")
for j in model.feature_importances_.argsort()[::-1][:3]:
    print(f"{X.columns[j]:<14} {model.feature_importances_[j]:.3f}")
