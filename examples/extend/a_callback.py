"""A callback that ends a run: no better validation accuracy for some evaluations."""

import wrssl


class EarlyStopping(wrssl.Callback):
    """Stop after ``patience`` evaluations without a better checkpoint; the result of the run is kept."""

    def __init__(self, patience: int = 5) -> None:
        self.patience = patience

    def on_evaluate(self, trainer, row):
        since = [earlier["step"] for earlier in trainer.history if earlier["step"] > trainer.best.step]
        if len(since) >= self.patience:
            trainer.stop()


if __name__ == "__main__":
    scn = wrssl.load_scenario("digits", ood="patches", ratio=0.5, seed=0)
    res = wrssl.fit(scn, steps=2000, seed=0, fallback=False, callbacks=[EarlyStopping()])
    print(f"{res.metrics['optimizer_steps']} steps, best at {res.metrics['best_step']}")
