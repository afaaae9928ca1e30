# %% [markdown]
# # Train a graph network
#
# The members of a karate club split into two groups (Zachary 1977). From the friendships and two known members a graph network
# finds the group of the other 32, as in the paper by Kipf and Welling (2017). Needs PyTorch.

# %% [markdown]
# Idle threads of PyTorch spin by default and take the cores from wollemi's threads. Set `OMP_WAIT_POLICY` before PyTorch is
# imported: on two shared cores a step on the PubMed graph took 21 ms instead of 272.

# %%
import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch

import wollemi as wl
from wollemi.nn import GraphAttention, GraphConv

# %% [markdown]
# ## The graph
#
# `edge_index` has the sources and the targets of the edges, as in PyTorch Geometric. A friendship is two edges.

# %%
friends = """
2-1 3-1 3-2 4-1 4-2 4-3 5-1 6-1 7-1 7-5 7-6 8-1 8-2 8-3 8-4 9-1 9-3 10-3 11-1 11-5 11-6 12-1 13-1 13-4 14-1 14-2 14-3 14-4 17-6
17-7 18-1 18-2 20-1 20-2 22-1 22-2 26-24 26-25 28-3 28-24 28-25 29-3 30-24 30-27 31-2 31-9 32-1 32-25 32-26 32-29 33-3 33-9 33-15
33-16 33-19 33-21 33-23 33-24 33-30 33-31 33-32 34-9 34-10 34-14 34-15 34-16 34-19 34-20 34-21 34-23 34-24 34-27 34-28 34-29 34-30
34-31 34-32 34-33
"""
pairs = torch.tensor([[int(end) - 1 for end in pair.split("-")] for pair in friends.split()]).T
edge_index = torch.cat([pairs, pairs.flip(0)], dim=1)
n = 34
stayed = {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 17, 18, 20, 22}
group = torch.tensor([0 if member in stayed else 1 for member in range(1, n + 1)])
print(pairs.shape[1], "friendships")

# %% [markdown]
# ## Self-loops
#
# Kipf and Welling add an edge from each node to itself, so that a node keeps its own features. Layers of PyTorch Geometric add
# these edges; wollemi's layers compute with the edges that they are given.

# %%
loops = torch.arange(n).expand(2, n)
graph = wl.graph.from_edges(torch.cat([edge_index, loops], dim=1), num_nodes=n)
graph

# %% [markdown]
# ## The model and the training loop
#
# A layer takes the graph in any form: this `Graph`, the `edge_index` itself, a `wl.Csr` or a sparse tensor. A `Graph` is sorted once.


# %%
class Network(torch.nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.first = GraphConv(features, hidden)
        self.second = GraphConv(hidden, classes)

    def forward(self, graph, x):
        return self.second(graph, self.first(graph, x).tanh())


def train(model, x, known, steps=200):
    """Train with the groups of the known members, and return the share of members that are right."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)
    for step in range(steps):
        optimizer.zero_grad()
        scores = model(graph, x)
        loss = torch.nn.functional.cross_entropy(scores[known], group[known])
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step:3}: loss {loss.item():.3f}")
    with torch.no_grad():
        return (model(graph, x).argmax(1) == group).float().mean().item()


x = torch.eye(n)  # no features but the number of the member
known = torch.tensor([0, 33])  # the teacher and the president
torch.manual_seed(0)
right = train(Network(n, 16, 2), x, known)
print(f"{100 * right:.0f} % right")

# %% [markdown]
# ## Attention
#
# The same with attention along the edges: each member weighs the friends.


# %%
class Attention(torch.nn.Module):
    def __init__(self, features, hidden, classes, heads=4):
        super().__init__()
        self.first = GraphAttention(features, hidden, heads)
        self.second = GraphAttention(hidden * heads, classes)

    def forward(self, graph, x):
        return self.second(graph, torch.nn.functional.elu(self.first(graph, x)))


model = Attention(n, 8, 2)
print(f"{100 * train(model, x, known, steps=101):.0f} % right")
model

# %% [markdown]
# [Machine learning](../machine-learning.md) lists the layers next to the layers of PyTorch Geometric. `examples/train_models.py` times these
# models on a graph of 20,000 nodes, next to PyTorch alone.
