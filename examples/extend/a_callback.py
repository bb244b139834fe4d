"""A callback that ends a run: no better validation accuracy for some evaluations."""

import wrssl


class EarlyStopping(wrssl.Callback):
    """Stop after ``patience`` evaluations without a better checkpoint; the result of the run is kept."""

    def __init__(self, patience: int = 3) -> None:
        self.patience = patience

    def on_evaluate(self, trainer, row):  # about twenty times per run
        since = [earlier["step"] for earlier in trainer.history if earlier["step"] > trainer.best.step]
        if len(since) >= self.patience:
            trainer.stop()  # after this step; checkpoint, weights and verdicts are as if it had been the last one


if __name__ == "__main__":
    scn = wrssl.load_scenario("moons", ood="faraway", ratio=0.5, seed=0)
    res = wrssl.fit(scn, steps=400, seed=0, fallback=False, callbacks=[EarlyStopping()])
    print(f"{res.metrics['optimizer_steps']} of 400 steps, best at {res.metrics['best_step']}")
