# %% [markdown]
# # Graphs and attention
#
# Graph networks and sparse attention are made of three products with a sparse pattern: `spmm` adds up features of neighbours,
# `sddmm` scores every edge, and `fusedmm` does both in one pass. Needs PyTorch.

# %%
# %matplotlib inline
import torch

import wollemi as wl

# %% [markdown]
# ## A graph from a list of edges

# %%
torch.manual_seed(0)
points = torch.rand(200, 2)
near = torch.cdist(points, points) < 0.12
edges = near.nonzero().T  # sources, targets
graph = wl.graph.from_edges(edges, num_nodes=200)
print(edges.shape[1], "edges")

# %%
figure = wl.Csr(near.double().numpy()).plot()
figure

# %% [markdown]
# ## Messages
#
# Each node gets the mean of its neighbours' features. The names are DGL's.

# %%
x = torch.rand(200, 16, requires_grad=True)
mean = wl.graph.gspmm(graph, "copy_lhs", "mean", x)
print(mean.shape)

# %% [markdown]
# ## Attention
#
# A score for each edge, a softmax over the edges of a node, a weighted sum. First step by step, then in one pass: the scores
# of the second way are never an array.

# %%
q, k, v = (torch.rand(200, 16, requires_grad=True) for _ in range(3))
scores = wl.graph.gsddmm(graph, "dot", k, q)  # u (source) has the key, v (target) the query
weights = wl.graph.edge_softmax(graph, scores)
step_by_step = wl.graph.gspmm(graph, "mul", "sum", v, weights)

# %%
from wollemi.interop.torch import fusedmm

one_pass = fusedmm(graph.pattern, q, k, v, edge="softmax")
print(float((one_pass - step_by_step).detach().abs().max()))

# %% [markdown]
# ## Gradients

# %%
one_pass.square().sum().backward()
print(q.grad.shape, bool(torch.isfinite(q.grad).all()))

# %% [markdown]
# ## A layer that learns
#
# The label of a point says in which half of the square it is; a layer of attention learns it from noisy values.

# %%
from wollemi.nn import GraphAttention

labels = (points[:, 0] > 0.5).float()
noisy = torch.stack([labels + 1.5 * torch.randn(200) for _ in range(8)], dim=1)
layer = GraphAttention(8, 8, heads=1)
head = torch.nn.Linear(8, 1)
optimizer = torch.optim.Adam([*layer.parameters(), *head.parameters()], lr=0.02)
for step in range(61):
    optimizer.zero_grad()
    guess = head(layer(graph.pattern, noisy).reshape(200, -1)).squeeze(1)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(guess, labels)
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        right = ((guess > 0) == (labels > 0.5)).float().mean()
        print(f"step {step:2d}: loss {loss.item():.3f}, {100 * float(right):.0f} % right")

# %% [markdown]
# [Machine learning](../machine-learning.md) lists the arguments of each product, and covers PyTorch's compiler, and JAX.
