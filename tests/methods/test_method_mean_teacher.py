"""Mean Teacher against NumPy: the loss, the moving average, the teacher's batch statistics, the round trip."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

from wrssl.api import Pass
from wrssl.methods import METHODS
from wrssl.models import split
from wrssl.norm import convert_batchnorm
from wrssl.training import PolicyNet

AUGMENT = 101  # the seed of the context's generator


def move(module, seed, ref):
    """Another student: what an optimizer step would do to the parameters."""
    with torch.no_grad():
        for number, p in enumerate(module.parameters()):
            p.add_(0.3 * ref.normal(*p.shape, seed=seed + number))


@pytest.fixture
def started(make_net, ref):
    """A student that has moved away from its teacher."""
    net, method = make_net(), METHODS.create("mt")
    method.setup(net)
    move(net.module, 50, ref)
    return net, method


def by_hand(ref, net, teacher, x, noise):
    first, second = ref.noise(x.shape, AUGMENT, 2)
    student, inputs = ref.Net(net.module), x.numpy() + noise * first
    p, t = student.probabilities(inputs), ref.Net(teacher).probabilities(x.numpy() + noise * second)
    return inputs, t, ((p - t) ** 2).sum(1) / 3, ref.through_softmax(p, 2 * (p - t) / 3)


@pytest.mark.parametrize("noise", [0.0, 0.15])
def test_views_loss_and_gradient(noise, started, ref, x, make_context):
    net, method = started
    views = method.views(net, x, make_context(noise=noise))
    inputs, targets, want, slope = by_hand(ref, net, method.teacher, x, noise)
    ref.close(views.inputs, inputs)
    ref.close(views.targets, targets)
    r = method.loss(net.head(views.features), views.targets)
    ref.close(r, want)
    assert (r > 0).all(), "student and teacher are the same network"
    gradients = torch.autograd.grad(r.sum(), list(net.module.parameters()))
    for got, expected in zip(gradients, ref.Net(net.module).parameter_gradients(inputs, slope), strict=True):
        ref.close(got, expected)


def test_without_noise_both_see_the_batch_itself(started, x, make_context):
    net, method = started
    assert method.views(net, x, make_context(noise=0.0)).inputs is x
    assert torch.equal(net.calls[1].inputs, x)


def test_setup_copies_the_student(make_net, x, make_context):
    net, method = make_net(), METHODS.create("mt")
    method.setup(net)
    for mine, theirs in zip(net.module.parameters(), method.teacher.parameters(), strict=True):
        assert torch.equal(mine, theirs)
        assert mine.data_ptr() != theirs.data_ptr()
        assert mine.requires_grad
        assert not theirs.requires_grad
    views = method.views(net, x, make_context())
    assert (method.loss(net.head(views.features), views.targets) == 0).all()


def test_the_first_step_copies_the_student(started):
    net, method = started
    method.after_step(net, 0)
    for mine, theirs in zip(net.module.parameters(), method.teacher.parameters(), strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("decay", [0.95, 0.5])
def test_the_teacher_is_the_moving_average_of_the_student(decay, make_net, ref):
    net, method = make_net(), METHODS.create("mt", {"decay": decay})
    method.setup(net)
    average = [p.detach().numpy().copy() for p in net.module.parameters()]
    for t in range(30):
        move(net.module, 1000 + 10 * t, ref)
        student = copy.deepcopy(net.module)
        method.after_step(net, t)
        a = min(1 - 1 / (t + 1), decay)
        average = [a * old + (1 - a) * p.detach().numpy() for old, p in zip(average, student.parameters(), strict=True)]
        for got, want in zip(method.teacher.parameters(), average, strict=True):
            ref.close(got, want)
        for mine, before in zip(net.module.parameters(), student.parameters(), strict=True):
            assert torch.equal(mine, before), "the student moved"


def test_the_decay_by_hand(make_net):
    """Student 1, teacher 0: afterwards the teacher is 1 − a."""
    net = make_net()
    for t, moved in ((0, 1.0), (1, 1 / 2), (3, 1 / 4), (18, 1 / 19), (19, 0.05), (20, 0.05), (10**6, 0.05)):
        method = METHODS.create("mt")
        method.setup(net)
        with torch.no_grad():
            for mine, theirs in zip(net.module.parameters(), method.teacher.parameters(), strict=True):
                mine.fill_(1.0)
                theirs.zero_()
        method.after_step(net, t)
        for p in method.teacher.parameters():
            torch.testing.assert_close(p, torch.full_like(p, moved), rtol=1e-12, atol=0)


def normalized_net(policy, ref):
    """BN, then a head; float64, all statistics away from their initial values."""
    layer = nn.BatchNorm1d(4).double()
    head = nn.utils.skip_init(nn.Linear, 4, 3, dtype=torch.float64)
    with torch.no_grad():
        head.weight.copy_(ref.normal(3, 4, seed=1))
        head.bias.copy_(ref.normal(3, seed=2))
    layer.running_mean.copy_(ref.normal(4, seed=3))
    layer.running_var.copy_(1 + ref.normal(4, seed=4) ** 2)
    model = convert_batchnorm(nn.Sequential(layer, head)).train()
    return PolicyNet(split(model, ref.normal(3, 4, seed=5)), policy)


@pytest.mark.parametrize("policy", ["batch", "frozen", "eval", "weighted"])
def test_the_teachers_batch_statistics(policy, ref, x, make_context):
    """By its own passes where the policy lets them move, else by the moving average."""
    net, method = normalized_net(policy, ref), METHODS.create("mt")
    method.setup(net)
    w = np.linspace(0.1, 1.0, 9)
    net.weights = torch.as_tensor(w)
    old = {k: v.clone() for k, v in method.teacher.state_dict().items()}
    net.features(3 + 2 * x, Pass.LABELED)  # the student's buffers move here, the teacher's must not
    method.views(net, x, make_context())
    mine = {k: v.clone() for k, v in net.module.state_dict().items()}
    method.after_step(net, 3)
    new = method.teacher.state_dict()

    rows, mean, var = x.numpy(), old["0.running_mean"].numpy(), old["0.running_var"].numpy()
    if policy in ("frozen", "eval"):
        want_mean = 0.75 * mean + 0.25 * mine["0.running_mean"].numpy()
        want_var = 0.75 * var + 0.25 * mine["0.running_var"].numpy()
    else:
        share = w / w.sum() if policy == "weighted" else np.full(9, 1 / 9)
        n = 1 / (share**2).sum()
        center = share @ rows
        want_mean = 0.9 * mean + 0.1 * center
        want_var = 0.9 * var + 0.1 * (share @ (rows - center) ** 2) * n / (n - 1)
    ref.close(new["0.running_mean"], want_mean)
    ref.close(new["0.running_var"], want_var)
    assert new["0.num_batches_tracked"].item() == (0 if policy in ("frozen", "eval") else 1)
    for name, value in net.module.state_dict().items():
        assert torch.equal(value, mine[name]), "the teacher moved the student"


def test_the_state_goes_into_a_new_object_and_on_from_there(started, make_net, ref, x, make_context):
    net, method = started
    method.after_step(net, 4)
    state = {name: value.clone() for name, value in method.state_dict().items()}
    other = METHODS.create("mt")
    other.setup(net)
    other.load_state_dict(state)
    assert all(p.data_ptr() != state[n].data_ptr() for n, p in other.teacher.state_dict().items())
    for t in (5, 6):
        move(net.module, 70 + 10 * t, ref)
        targets = [m.views(net, x, make_context(noise=0.1)).targets for m in (method, other)]
        assert torch.equal(*targets)
        method.after_step(net, t)
        other.after_step(net, t)
    for name, value in method.state_dict().items():
        assert torch.equal(value, other.state_dict()[name])
        assert not torch.equal(value, state[name])


def test_no_state_before_setup():
    assert METHODS.create("mt").state_dict() == {}
