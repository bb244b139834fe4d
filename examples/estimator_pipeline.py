"""The classifier in a scikit-learn pipeline: a table of text and numbers, 40 labels, and a pool that is half foreign.

Run with: python examples/estimator_pipeline.py
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from wrssl import WRSSLClassifier

LABELED, POOL = 40, 340

# A table with a column of text: how large the cell nuclei are.
data = load_breast_cancer(as_frame=True)
table = data.data.rename(columns=lambda name: name.replace(" ", "_"))
table["size"] = pd.qcut(table.pop("mean_radius"), 3, labels=["small", "medium", "large"]).astype(str)
names = data.target.map({0: "malignant", 1: "benign"}).to_numpy()

random = np.random.default_rng(0)
order = random.permutation(len(table))
labeled, pool, test = np.split(order, [LABELED, POOL])

# As many foreign rows: every single value is a plausible one, but they were not measured on the same person.
foreign = table.iloc[pool].apply(lambda column: random.permutation(column.to_numpy()))
X = pd.concat([table.iloc[labeled], table.iloc[pool], foreign], ignore_index=True)
y = np.full(len(X), -1, dtype=object)  # the number −1: no label
y[:LABELED] = names[labeled]


def encoded(classifier):
    numbers, text = [name for name in X if name != "size"], ["size"]
    return make_pipeline(make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(), text)), classifier)


candidates = {
    "logistic regression, 40 labels": encoded(LogisticRegression(max_iter=1000)).fit(X[:LABELED], y[:LABELED]),
    "every pool row counts": encoded(WRSSLClassifier(weights="none", random_state=0)).fit(X, y),
    "WRSSLClassifier": encoded(WRSSLClassifier(random_state=0)).fit(X, y),
    "WRSSLClassifier on the frame itself": WRSSLClassifier(random_state=0).fit(X, y),
}
print(f"{len(test)} test rows, so that differences below 2 points are chance")
for title, model in candidates.items():
    print(f"{title:40}{100 * model.score(table.iloc[test], names[test]):6.1f} % correct")

verdicts = candidates["WRSSLClassifier on the frame itself"].verdicts_
is_foreign = verdicts["id"] >= POOL
print("\nwhat it says about the pool:")
print(pd.crosstab(is_foreign.map({True: "foreign", False: "own"}).rename("row"), verdicts["verdict"]))
