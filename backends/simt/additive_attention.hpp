// Attention with additive scores, leaky(own + other): one pass over the weighted rows computes all
// heads. See wollemi.core.operations.attention.
//
// A wave processes a row, or a piece of a long row. Its groups of L lanes process different entries
// in parallel. Each lane holds some columns; all columns of one vector belong to one head. A lane
// computes the weight of an entry for its heads itself. Lanes of the same head repeat this
// computation, because a shuffle costs more.
#pragma once
#include "simt/spmm_max.hpp"

namespace wl {

// Entries that each lane of a group loads before it uses the first of them.
constexpr int ATTENDED_AHEAD = 4;

template <class S>
WL_DEVICE S leaky(S z, S slope) {
  return z > S(0) ? z : slope * z;
}

// Calls body(entries, is_present) for ATTENDED_AHEAD entries at a time; absent entries repeat the
// last one.
template <int L, class I, class Body>
WL_DEVICE void for_attended(const item& it, I begin, I end, Body& body) {
  constexpr int U = ATTENDED_AHEAD, side = WL_WARP / L;
  for (I e = begin + I(lane_of(it) / L); e < end; e += I(U * side)) {
    I at[U];
    bool there[U];
#pragma unroll
    for (int u = 0; u < U; ++u) {
      there[u] = e + I(u * side) < end;
      at[u] = there[u] ? e + I(u * side) : end - I(1);
    }
    body(at, there);
  }
}

// Calls body(block, tile, row, begin, end, line) for all rows and pieces of rows. `line` is the
// line of `partial` for a piece, or -1 for a whole row.
template <class I, class Body>
WL_DEVICE void for_pieces(const item& it, i64 items, i64 batch, i64 tiles,
                          const listed_rows<I>& rows, const Body& body) {
  constexpr int waves = WL_BLOCK / WL_WARP;
  const i64 units = items * tiles * batch;
  for (i64 u = it.block() * waves + wave_of(it); u < units; u += it.blocks() * waves) {
    const unit_of unit(u, items, tiles);
    const I goes_to = rows.goes_to(unit.i);
    const bool cut = goes_to < 0;
    body(unit.b, unit.tile, i64(cut ? rows.row_of(items, goes_to) : goes_to), rows.begin(unit.i),
         rows.end(unit.i), cut ? i64(-1) - i64(goes_to) : i64(-1));
  }
}

// The columns of a lane and their heads. A head has `p` columns, a multiple of E.
template <class lanes, int V>
struct heads_of_lane {
  lanes mine;
  int head[V];
  bool first[V]; // whether a vector holds the first columns of its head
  WL_DEVICE heads_of_lane(int rank, i64 tile, i64 k, i64 p) : mine(rank, tile, k) {
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const int column = mine.has(v) ? int(mine.column(v)) : 0;
      head[v] = column / int(p);
      first[v] = mine.has(v) && column % int(p) == 0;
    }
  }
  // Per-head values of a row, one for each vector of the lane.
  template <class T>
  WL_DEVICE void load(const T* row, T (&numbers)[V]) const {
#pragma unroll
    for (int v = 0; v < V; ++v)
      numbers[v] = row[head[v]];
  }
  template <class T>
  WL_DEVICE void store(T* row, const T (&numbers)[V]) const {
#pragma unroll
    for (int v = 0; v < V; ++v)
      if (first[v])
        row[head[v]] = numbers[v];
  }
};

// E_i = sum_j p_ij D_j with the softmax p of the scores of a row. GRADIENTS also computes the
// inputs of the gradients. A line of `partial` holds k sums, k sums of positive scores, and for
// each head the largest score, the sum of exponentials and the sum of exponentials of positive
// scores.
template <int L, int V, int E, int WHOLE, int GRADIENTS, class T, class I>
struct attended_rows {
  using lanes = columns_of_lane<L, V, E, WHOLE>;
  using heads = heads_of_lane<lanes, V>;
  i64 k, p;
  const item& it;
  const I* indices;
  blocks_of<const T> target, source, D;
  blocks_of<T> out, positive, log_totals, shares;
  T slope;
  i64 lines;
  T* partial;

  struct running {
    const attended_rows& of;
    const heads& columns;
    i64 block;
    T own[V], largest[V], total[V], of_positive[V];
    T sums[V * E], positive[V * E];

    WL_DEVICE void rescale(int v, T to) {
      const T factor = power_from(largest[v], to);
      largest[v] = to;
      total[v] *= factor;
      of_positive[v] *= factor;
#pragma unroll
      for (int e = 0; e < E; ++e) {
        sums[v * E + e] *= factor;
        if constexpr (GRADIENTS)
          positive[v * E + e] *= factor;
      }
    }

    WL_DEVICE void operator()(const I (&at)[ATTENDED_AHEAD], const bool (&there)[ATTENDED_AHEAD]) {
      constexpr int U = ATTENDED_AHEAD;
      pack<T, E> rows[U][V];
      T z[U][V];
#pragma unroll
      for (int u = 0; u < U; ++u) {
        const i64 other = of.indices[at[u]];
        columns.load(of.source.row(block, other), z[u]);
#pragma unroll
        for (int v = 0; v < V; ++v)
          rows[u][v] = columns.mine.load(of.D.row(block, other), v);
      }
#pragma unroll
      for (int v = 0; v < V; ++v) {
        T most = largest[v];
#pragma unroll
        for (int u = 0; u < U; ++u) {
          z[u][v] += own[v];
          const T score = leaky(z[u][v], of.slope);
          most = score > most ? score : most; // an absent entry repeats a score of the row
        }
        if (most > largest[v])
          rescale(v, most);
        const T base = most == lowest<T>() ? T(0) : most;
#pragma unroll
        for (int u = 0; u < U; ++u)
          if (there[u]) {
            const T weight = exponential(leaky(z[u][v], of.slope) - base);
            total[v] += weight;
            add_pack<T, E>(sums + v * E, weight, rows[u][v]);
            if constexpr (GRADIENTS)
              if (z[u][v] > T(0)) {
                of_positive[v] += weight;
                add_pack<T, E>(positive + v * E, weight, rows[u][v]);
              }
          }
      }
    }
  };

  WL_DEVICE void operator()(i64 block, i64 tile, i64 row, I begin, I end, i64 line) const {
    const wave_of_row group{it};
    const heads columns(group.rank(), tile, k, p);
    running found{*this, columns, block, {}, {}, {}, {}, {}, {}};
    columns.load(target.row(block, row), found.own);
#pragma unroll
    for (int v = 0; v < V; ++v)
      found.largest[v] = lowest<T>();
    for_attended<L>(it, begin, end, found);
    T largest[V];
#pragma unroll
    for (int v = 0; v < V; ++v)
      largest[v] = found.largest[v];
    group.reduce(largest, larger<T>(), L);
#pragma unroll
    for (int v = 0; v < V; ++v)
      found.rescale(v, largest[v]);
    group.reduce(found.total, adding<T>(), L);
    group.reduce(found.sums, adding<T>(), L);
    if constexpr (GRADIENTS) {
      group.reduce(found.of_positive, adding<T>(), L);
      group.reduce(found.positive, adding<T>(), L);
    }
    if (group.rank() >= L)
      return;
    if (line >= 0) {
      const i64 h = k / p;
      T* const sums = partial + (block * lines + line) * (2 * k + 3 * h);
      columns.mine.store_each(sums, found.sums);
      columns.mine.store_each(sums + k, found.positive);
      columns.store(sums + 2 * k, found.largest);
      columns.store(sums + 2 * k + h, found.total);
      columns.store(sums + 2 * k + 2 * h, found.of_positive);
      return;
    }
    T logs[V];
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const T share = share_of_total(found.total[v]);
      logs[v] = log_of_total(found.largest[v], found.total[v]);
      found.of_positive[v] *= share;
#pragma unroll
      for (int e = 0; e < E; ++e) {
        found.sums[v * E + e] *= share;
        if constexpr (GRADIENTS)
          found.positive[v * E + e] *= share;
      }
    }
    columns.mine.store(out.row(block, row), found.sums);
    if constexpr (GRADIENTS) {
      columns.mine.store(positive.row(block, row), found.positive);
      columns.store(log_totals.row(block, row), logs);
      columns.store(shares.row(block, row), found.of_positive);
    }
  }
};
template <int L, int V, int E, int WHOLE, int GRADIENTS, class T, class I>
WL_DEVICE void
csr_additive_attention(const item& it, i64 items, i64 k, i64 p, i64 batch, const I* bounds,
                       const I* goes_to, const I* indices, const T* target, i64 target_ld,
                       i64 target_step, const T* source, i64 source_ld, i64 source_step, const T* D,
                       i64 D_ld, i64 D_step, T* out, i64 out_ld, i64 out_step, T* positive,
                       i64 positive_ld, i64 positive_step, T* log_totals, i64 log_totals_ld,
                       i64 log_totals_step, T* shares, i64 shares_ld, i64 shares_step, T slope,
                       i64 lines, T* partial) {
  using lanes = columns_of_lane<L, V, E, WHOLE>;
  const i64 tiles = (k + lanes::width - 1) / lanes::width;
  for_pieces(
      it, items, batch, tiles, listed_rows<I>{bounds, goes_to, indices},
      attended_rows<L, V, E, WHOLE, GRADIENTS, T, I>{k,
                                                     p,
                                                     it,
                                                     indices,
                                                     {target, target_ld, target_step},
                                                     {source, source_ld, source_step},
                                                     {D, D_ld, D_step},
                                                     {out, out_ld, out_step},
                                                     {positive, positive_ld, positive_step},
                                                     {log_totals, log_totals_ld, log_totals_step},
                                                     {shares, shares_ld, shares_step},
                                                     slope,
                                                     lines,
                                                     partial});
}

// Adds up the pieces of cut rows in their order.
template <int GRADIENTS, class T, class I>
WL_DEVICE void additive_attention_join(const item& it, i64 cuts, i64 k, i64 p, i64 batch,
                                       const I* rows, const I* first, i64 lines, const T* partial,
                                       T* out, i64 out_ld, i64 out_step, T* positive,
                                       i64 positive_ld, i64 positive_step, T* log_totals,
                                       i64 log_totals_ld, i64 log_totals_step, T* shares,
                                       i64 shares_ld, i64 shares_step) {
  const i64 step = it.blocks() * WL_BLOCK, work = cuts * k * batch, h = k / p;
  const i64 length = 2 * k + 3 * h;
  for (i64 w = it.block() * WL_BLOCK + it.thread(); w < work; w += step) {
    const i64 c = w % k, i = w / k % cuts, b = w / k / cuts, head = c / p;
    const T* const of_block = partial + b * lines * length;
    T largest = lowest<T>();
    for (I at = first[i]; at < first[i + 1]; ++at)
      largest = larger<T>()(of_block[at * length + 2 * k + head], largest);
    T sum(0), of_sum(0), total(0), of_positive(0);
#pragma unroll unrolled(4)
    for (I at = first[i]; at < first[i + 1]; ++at) {
      const T* const line = of_block + at * length;
      const T factor = power_from(line[2 * k + head], largest);
      sum += factor * line[c];
      total += factor * line[2 * k + h + head];
      if constexpr (GRADIENTS) {
        of_sum += factor * line[k + c];
        of_positive += factor * line[2 * k + 2 * h + head];
      }
    }
    const T share = share_of_total(total);
    out[b * out_step + rows[i] * out_ld + c] = sum * share;
    if constexpr (GRADIENTS) {
      positive[b * positive_step + rows[i] * positive_ld + c] = of_sum * share;
      if (c % p == 0) {
        log_totals[b * log_totals_step + rows[i] * log_totals_ld + head] =
            log_of_total(largest, total);
        shares[b * shares_step + rows[i] * shares_ld + head] = of_positive * share;
      }
    }
  }
}

// Contributions of <G, E> to the columns of the pattern, which are the rows of its transpose. With
// the slope d of each score: of_D_j = sum_i p_ij G_i, steep_j = sum_i p_ij d_ij G_i, and of_means_j
// = sum_i p_ij d_ij mean_i. A line of `partial` holds the three results one after the other.
template <int L, int V, int E, int WHOLE, class T, class I>
struct attending_columns {
  using lanes = columns_of_lane<L, V, E, WHOLE>;
  using heads = heads_of_lane<lanes, V>;
  i64 k, p;
  const item& it;
  const I* indices;
  blocks_of<const T> target, source, G, log_totals, means;
  blocks_of<T> of_D, steep, of_means;
  T slope;
  i64 lines;
  T* partial;

  struct running {
    const attending_columns& of;
    const heads& columns;
    i64 block;
    T own[V], mean[V];
    T sums[V * E], steep[V * E];

    WL_DEVICE void operator()(const I (&at)[ATTENDED_AHEAD], const bool (&there)[ATTENDED_AHEAD]) {
      constexpr int U = ATTENDED_AHEAD;
      pack<T, E> rows[U][V];
      T z[U][V], logs[U][V], of_row[U][V];
#pragma unroll
      for (int u = 0; u < U; ++u) {
        const i64 other = of.indices[at[u]];
        columns.load(of.target.row(block, other), z[u]);
        columns.load(of.log_totals.row(block, other), logs[u]);
        columns.load(of.means.row(block, other), of_row[u]);
#pragma unroll
        for (int v = 0; v < V; ++v)
          rows[u][v] = columns.mine.load(of.G.row(block, other), v);
      }
#pragma unroll
      for (int u = 0; u < U; ++u)
#pragma unroll
        for (int v = 0; v < V; ++v)
          if (there[u]) {
            const T sum = own[v] + z[u][v];
            const T weight = exponential(leaky(sum, of.slope) - logs[u][v]);
            const T steepness = sum > T(0) ? weight : of.slope * weight;
            add_pack<T, E>(sums + v * E, weight, rows[u][v]);
            add_pack<T, E>(steep + v * E, steepness, rows[u][v]);
            mean[v] += steepness * of_row[u][v];
          }
    }
  };

  WL_DEVICE void operator()(i64 block, i64 tile, i64 row, I begin, I end, i64 line) const {
    const wave_of_row group{it};
    const heads columns(group.rank(), tile, k, p);
    running found{*this, columns, block, {}, {}, {}, {}};
    columns.load(source.row(block, row), found.own);
    for_attended<L>(it, begin, end, found);
    group.reduce(found.sums, adding<T>(), L);
    group.reduce(found.steep, adding<T>(), L);
    group.reduce(found.mean, adding<T>(), L);
    if (group.rank() >= L)
      return;
    if (line >= 0) {
      T* const sums = partial + (block * lines + line) * (2 * k + k / p);
      columns.mine.store_each(sums, found.sums);
      columns.mine.store_each(sums + k, found.steep);
      columns.store(sums + 2 * k, found.mean);
      return;
    }
    columns.mine.store(of_D.row(block, row), found.sums);
    columns.mine.store(steep.row(block, row), found.steep);
    columns.store(of_means.row(block, row), found.mean);
  }
};
template <int L, int V, int E, int WHOLE, class T, class I>
WL_DEVICE void
additive_columns(const item& it, i64 items, i64 k, i64 p, i64 batch, const I* bounds,
                 const I* goes_to, const I* indices, const T* target, i64 target_ld,
                 i64 target_step, const T* source, i64 source_ld, i64 source_step, const T* G,
                 i64 G_ld, i64 G_step, const T* log_totals, i64 log_totals_ld, i64 log_totals_step,
                 const T* means, i64 means_ld, i64 means_step, T* of_D, i64 of_D_ld, i64 of_D_step,
                 T* steep, i64 steep_ld, i64 steep_step, T* of_means, i64 of_means_ld,
                 i64 of_means_step, T slope, i64 lines, T* partial) {
  using lanes = columns_of_lane<L, V, E, WHOLE>;
  const i64 tiles = (k + lanes::width - 1) / lanes::width;
  for_pieces(it, items, batch, tiles, listed_rows<I>{bounds, goes_to, indices},
             attending_columns<L, V, E, WHOLE, T, I>{k,
                                                     p,
                                                     it,
                                                     indices,
                                                     {target, target_ld, target_step},
                                                     {source, source_ld, source_step},
                                                     {G, G_ld, G_step},
                                                     {log_totals, log_totals_ld, log_totals_step},
                                                     {means, means_ld, means_step},
                                                     {of_D, of_D_ld, of_D_step},
                                                     {steep, steep_ld, steep_step},
                                                     {of_means, of_means_ld, of_means_step},
                                                     slope,
                                                     lines,
                                                     partial});
}

// Adds up the pieces of cut columns in their order.
template <class T, class I>
WL_DEVICE void additive_columns_join(const item& it, i64 cuts, i64 k, i64 p, i64 batch,
                                     const I* rows, const I* first, i64 lines, const T* partial,
                                     T* of_D, i64 of_D_ld, i64 of_D_step, T* steep, i64 steep_ld,
                                     i64 steep_step, T* of_means, i64 of_means_ld,
                                     i64 of_means_step) {
  const i64 step = it.blocks() * WL_BLOCK, work = cuts * k * batch, length = 2 * k + k / p;
  for (i64 w = it.block() * WL_BLOCK + it.thread(); w < work; w += step) {
    const i64 c = w % k, i = w / k % cuts, b = w / k / cuts, head = c / p;
    T sum(0), of_sum(0), mean(0);
#pragma unroll unrolled(4)
    for (I at = first[i]; at < first[i + 1]; ++at) {
      const T* const line = partial + (b * lines + at) * length;
      sum += line[c];
      of_sum += line[k + c];
      mean += line[2 * k + head];
    }
    of_D[b * of_D_step + rows[i] * of_D_ld + c] = sum;
    steep[b * steep_step + rows[i] * steep_ld + c] = of_sum;
    if (c % p == 0)
      of_means[b * of_means_step + rows[i] * of_means_ld + head] = mean;
  }
}

// of_source_jc = <D_j, steep_j> of head c - of_source_jc. On entry of_source holds of_means.
template <class T>
WL_DEVICE void additive_join(const item& it, i64 n, i64 heads, i64 p, i64 batch, const T* D,
                             i64 D_ld, i64 D_step, const T* steep, i64 steep_ld, i64 steep_step,
                             T* of_source, i64 of_source_ld, i64 of_source_step) {
  const i64 step = it.blocks() * WL_BLOCK, work = n * heads * batch;
  for (i64 w = it.block() * WL_BLOCK + it.thread(); w < work; w += step) {
    const i64 head = w % heads, j = w / heads % n, b = w / heads / n;
    const T* const of_D = D + b * D_step + j * D_ld + head * p;
    const T* const of_steep = steep + b * steep_step + j * steep_ld + head * p;
    T* const place = of_source + b * of_source_step + j * of_source_ld + head;
    T sum(0);
    for (i64 c = 0; c < p; ++c)
      sum += of_D[c] * of_steep[c];
    *place = sum - *place;
  }
}

} // namespace wl
