// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/step.hpp"

namespace wl {

// g_i = u_i = 0, M = I, omega = 1, f = P^H r
template <class T>
struct idr_start {
  mat<const T> r_;
  mat<T> g0_;
  mat<T> u0_;
  mat<T> g1_;
  mat<T> u1_;
  mat<T> g2_;
  mat<T> u2_;
  mat<T> g3_;
  mat<T> u3_;
  const T* p0_;
  const T* p1_;
  const T* p2_;
  const T* p3_;
  T* f0_;
  T* f1_;
  T* f2_;
  T* f3_;
  T* m0_0_;
  T* m1_0_;
  T* m1_1_;
  T* m2_0_;
  T* m2_1_;
  T* m2_2_;
  T* m3_0_;
  T* m3_1_;
  T* m3_2_;
  T* m3_3_;
  T* omega_;
  status_of<T> status;
  struct sum {
    T v0;
    T v1;
    T v2;
    T v3;
    WL_DEVICE sum& operator+=(sum o) {
      v0 += o.v0;
      v1 += o.v1;
      v2 += o.v2;
      v3 += o.v3;
      return *this;
    }
    template <class V>
    WL_DEVICE void each(const V& visit) {
      each_number(v0, visit);
      each_number(v1, visit);
      each_number(v2, visit);
      each_number(v3, visit);
    }
  };
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T p0_i = p0_[i];
    const T r_i = r_(i, c);
    const T p1_i = p1_[i];
    const T p2_i = p2_[i];
    const T p3_i = p3_[i];
    g0_(i, c) = T(real_t<T>(0.0));
    u0_(i, c) = T(real_t<T>(0.0));
    g1_(i, c) = T(real_t<T>(0.0));
    u1_(i, c) = T(real_t<T>(0.0));
    g2_(i, c) = T(real_t<T>(0.0));
    u2_(i, c) = T(real_t<T>(0.0));
    g3_(i, c) = T(real_t<T>(0.0));
    u3_(i, c) = T(real_t<T>(0.0));
    return {(conj((p0_i * real_t<T>(1.0))) * r_i), (conj((p1_i * real_t<T>(1.0))) * r_i), (conj((p2_i * real_t<T>(1.0))) * r_i), (conj((p3_i * real_t<T>(1.0))) * r_i)};
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const T new_f0 = total.v0;
    const T new_m0_0 = T(real_t<T>(1.0));
    const T new_f1 = total.v1;
    const T new_m1_0 = T(real_t<T>(0.0));
    const T new_m1_1 = T(real_t<T>(1.0));
    const T new_f2 = total.v2;
    const T new_m2_0 = T(real_t<T>(0.0));
    const T new_m2_1 = T(real_t<T>(0.0));
    const T new_m2_2 = T(real_t<T>(1.0));
    const T new_f3 = total.v3;
    const T new_m3_0 = T(real_t<T>(0.0));
    const T new_m3_1 = T(real_t<T>(0.0));
    const T new_m3_2 = T(real_t<T>(0.0));
    const T new_m3_3 = T(real_t<T>(1.0));
    const T new_omega = T(real_t<T>(1.0));
    f0_[c] = new_f0;
    m0_0_[c] = new_m0_0;
    f1_[c] = new_f1;
    m1_0_[c] = new_m1_0;
    m1_1_[c] = new_m1_1;
    f2_[c] = new_f2;
    m2_0_[c] = new_m2_0;
    m2_1_[c] = new_m2_1;
    m2_2_[c] = new_m2_2;
    f3_[c] = new_f3;
    m3_0_[c] = new_m3_0;
    m3_1_[c] = new_m3_1;
    m3_2_[c] = new_m3_2;
    m3_3_[c] = new_m3_3;
    omega_[c] = new_omega;
  }
};

// u = omega (r - sum_i c_i g_i) + sum_i c_i u_i with M c = f
template <class T>
struct idr_extend {
  mat<const T> r_;
  mat<T> u_;
  mat<const T> g0_;
  mat<const T> u0_;
  mat<const T> g1_;
  mat<const T> u1_;
  mat<const T> g2_;
  mat<const T> u2_;
  mat<const T> g3_;
  mat<const T> u3_;
  const T* f0_;
  const T* f1_;
  const T* f2_;
  const T* f3_;
  const T* m0_0_;
  const T* m1_0_;
  const T* m1_1_;
  const T* m2_0_;
  const T* m2_1_;
  const T* m2_2_;
  const T* m3_0_;
  const T* m3_1_;
  const T* m3_2_;
  const T* m3_3_;
  const T* omega_;
  status_of<T> status;
  using sum = none;
  struct column_state {
    bool active;
    T omega_;
    T v1;
    T v2;
    T v3;
    T v4;
  };

  WL_DEVICE column_state column(i64 c) const {
    if (!status.is_running(c))
      return {false, T(0), T(0), T(0), T(0), T(0)};
    const T e0 = (f0_[c] / m0_0_[c]);
    const T e1 = ((f1_[c] - (m1_0_[c] * e0)) / m1_1_[c]);
    const T e2 = (((f2_[c] - (m2_0_[c] * e0)) - (m2_1_[c] * e1)) / m2_2_[c]);
    return {true, omega_[c], e0, e1, e2, ((((f3_[c] - (m3_0_[c] * e0)) - (m3_1_[c] * e1)) - (m3_2_[c] * e2)) / m3_3_[c])};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T r_i = r_(i, c);
    const T g0_i = g0_(i, c);
    const T g1_i = g1_(i, c);
    const T g2_i = g2_(i, c);
    const T g3_i = g3_(i, c);
    const T u0_i = u0_(i, c);
    const T u1_i = u1_(i, c);
    const T u2_i = u2_(i, c);
    const T u3_i = u3_(i, c);
    const T new_u = ((s.omega_ * (r_i - ((((s.v1 * g0_i) + (s.v2 * g1_i)) + (s.v3 * g2_i)) + (s.v4 * g3_i)))) + ((((s.v1 * u0_i) + (s.v2 * u1_i)) + (s.v3 * u2_i)) + (s.v4 * u3_i)));
    u_(i, c) = new_u;
    return {};
  }
  WL_DEVICE void finish(i64, sum) const {}
};

// v = r - sum_i c_i g_i with M c = f
template <class T>
struct idr_reduce {
  mat<const T> r_;
  mat<T> v_;
  mat<const T> g0_;
  mat<const T> g1_;
  mat<const T> g2_;
  mat<const T> g3_;
  const T* f0_;
  const T* f1_;
  const T* f2_;
  const T* f3_;
  const T* m0_0_;
  const T* m1_0_;
  const T* m1_1_;
  const T* m2_0_;
  const T* m2_1_;
  const T* m2_2_;
  const T* m3_0_;
  const T* m3_1_;
  const T* m3_2_;
  const T* m3_3_;
  status_of<T> status;
  using sum = none;
  struct column_state {
    bool active;
    T v0;
    T v1;
    T v2;
    T v3;
  };

  WL_DEVICE column_state column(i64 c) const {
    if (!status.is_running(c))
      return {false, T(0), T(0), T(0), T(0)};
    const T e0 = (f0_[c] / m0_0_[c]);
    const T e1 = ((f1_[c] - (m1_0_[c] * e0)) / m1_1_[c]);
    const T e2 = (((f2_[c] - (m2_0_[c] * e0)) - (m2_1_[c] * e1)) / m2_2_[c]);
    return {true, e0, e1, e2, ((((f3_[c] - (m3_0_[c] * e0)) - (m3_1_[c] * e1)) - (m3_2_[c] * e2)) / m3_3_[c])};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T r_i = r_(i, c);
    const T g0_i = g0_(i, c);
    const T g1_i = g1_(i, c);
    const T g2_i = g2_(i, c);
    const T g3_i = g3_(i, c);
    const T new_v = (r_i - ((((s.v0 * g0_i) + (s.v1 * g1_i)) + (s.v2 * g2_i)) + (s.v3 * g3_i)));
    v_(i, c) = new_v;
    return {};
  }
  WL_DEVICE void finish(i64, sum) const {}
};

// u = omega z + sum_i c_i u_i with M c = f
template <class T>
struct idr_expand {
  mat<const T> z_;
  mat<T> u_;
  mat<const T> u0_;
  mat<const T> u1_;
  mat<const T> u2_;
  mat<const T> u3_;
  const T* f0_;
  const T* f1_;
  const T* f2_;
  const T* f3_;
  const T* m0_0_;
  const T* m1_0_;
  const T* m1_1_;
  const T* m2_0_;
  const T* m2_1_;
  const T* m2_2_;
  const T* m3_0_;
  const T* m3_1_;
  const T* m3_2_;
  const T* m3_3_;
  const T* omega_;
  status_of<T> status;
  using sum = none;
  struct column_state {
    bool active;
    T omega_;
    T v1;
    T v2;
    T v3;
    T v4;
  };

  WL_DEVICE column_state column(i64 c) const {
    if (!status.is_running(c))
      return {false, T(0), T(0), T(0), T(0), T(0)};
    const T e0 = (f0_[c] / m0_0_[c]);
    const T e1 = ((f1_[c] - (m1_0_[c] * e0)) / m1_1_[c]);
    const T e2 = (((f2_[c] - (m2_0_[c] * e0)) - (m2_1_[c] * e1)) / m2_2_[c]);
    return {true, omega_[c], e0, e1, e2, ((((f3_[c] - (m3_0_[c] * e0)) - (m3_1_[c] * e1)) - (m3_2_[c] * e2)) / m3_3_[c])};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T z_i = z_(i, c);
    const T u0_i = u0_(i, c);
    const T u1_i = u1_(i, c);
    const T u2_i = u2_(i, c);
    const T u3_i = u3_(i, c);
    const T new_u = ((s.omega_ * z_i) + ((((s.v1 * u0_i) + (s.v2 * u1_i)) + (s.v3 * u2_i)) + (s.v4 * u3_i)));
    u_(i, c) = new_u;
    return {};
  }
  WL_DEVICE void finish(i64, sum) const {}
};

// h_i = <p_i, g>
template <class T>
struct idr_project {
  mat<const T> g_;
  const T* p0_;
  const T* p1_;
  const T* p2_;
  const T* p3_;
  T* h0_;
  T* h1_;
  T* h2_;
  T* h3_;
  status_of<T> status;
  struct sum {
    T v0;
    T v1;
    T v2;
    T v3;
    WL_DEVICE sum& operator+=(sum o) {
      v0 += o.v0;
      v1 += o.v1;
      v2 += o.v2;
      v3 += o.v3;
      return *this;
    }
    template <class V>
    WL_DEVICE void each(const V& visit) {
      each_number(v0, visit);
      each_number(v1, visit);
      each_number(v2, visit);
      each_number(v3, visit);
    }
  };
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T p0_i = p0_[i];
    const T g_i = g_(i, c);
    const T p1_i = p1_[i];
    const T p2_i = p2_[i];
    const T p3_i = p3_[i];
    return {(conj((p0_i * real_t<T>(1.0))) * g_i), (conj((p1_i * real_t<T>(1.0))) * g_i), (conj((p2_i * real_t<T>(1.0))) * g_i), (conj((p3_i * real_t<T>(1.0))) * g_i)};
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const T new_h0 = total.v0;
    const T new_h1 = total.v1;
    const T new_h2 = total.v2;
    const T new_h3 = total.v3;
    h0_[c] = new_h0;
    h1_[c] = new_h1;
    h2_[c] = new_h2;
    h3_[c] = new_h3;
  }
};

// x += beta u_0, r -= beta g_0 with beta = f_0 / h_0; column 0 of M and f follow
template <class T>
struct idr_update_0 {
  mat<T> x_;
  mat<T> r_;
  mat<const T> g0_;
  mat<const T> u0_;
  T* f0_;
  const T* h0_;
  T* f1_;
  const T* h1_;
  T* f2_;
  const T* h2_;
  T* f3_;
  const T* h3_;
  T* m0_0_;
  T* m1_0_;
  T* m2_0_;
  T* m3_0_;
  status_of<T> status;
  using sum = real_t<T>;
  struct column_state {
    bool active;
    T v0;
  };

  WL_DEVICE column_state column(i64 c) const {
    if (!status.is_running(c))
      return {false, T(0)};
    const T e0 = (f0_[c] / h0_[c]);
    return {true, (((h0_[c] == real_t<T>(0.0)) || !finite(e0)) ? T(real_t<T>(0.0)) : T(e0))};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T x_i = x_(i, c);
    const T u0_i = u0_(i, c);
    const T new_x = (x_i + (s.v0 * u0_i));
    const T r_i = r_(i, c);
    const T g0_i = g0_(i, c);
    const T new_r = (r_i - (s.v0 * g0_i));
    x_(i, c) = new_x;
    r_(i, c) = new_r;
    return real_t<T>(0);
  }
  WL_DEVICE void finish(i64 c, sum) const {
    const T new_m0_0 = h0_[c];
    const T new_f0 = T(real_t<T>(0.0));
    const T new_m1_0 = h1_[c];
    const T e3 = (f0_[c] / h0_[c]);
    const T e4 = (((h0_[c] == real_t<T>(0.0)) || !finite(e3)) ? T(real_t<T>(0.0)) : T(e3));
    const T new_f1 = (f1_[c] - (e4 * h1_[c]));
    const T new_m2_0 = h2_[c];
    const T new_f2 = (f2_[c] - (e4 * h2_[c]));
    const T new_m3_0 = h3_[c];
    const T new_f3 = (f3_[c] - (e4 * h3_[c]));
    m0_0_[c] = new_m0_0;
    f0_[c] = new_f0;
    m1_0_[c] = new_m1_0;
    f1_[c] = new_f1;
    m2_0_[c] = new_m2_0;
    f2_[c] = new_f2;
    m3_0_[c] = new_m3_0;
    f3_[c] = new_f3;
    if (!(finite(f0_[c]) && finite(h0_[c])))
      status.halt(c, NOT_FINITE);
    else if ((h0_[c] == real_t<T>(0.0)) || !finite(e3))
      status.halt(c, BREAKDOWN);
  }
};

// Make g_1, u_1 biorthogonal to p_0; x += beta u_1, r -= beta g_1; column 1 of M and f
template <class T>
struct idr_update_1 {
  mat<T> x_;
  mat<T> r_;
  mat<const T> g0_;
  mat<const T> u0_;
  mat<T> g1_;
  mat<T> u1_;
  const T* h0_;
  T* f1_;
  const T* h1_;
  T* f2_;
  const T* h2_;
  T* f3_;
  const T* h3_;
  const T* m0_0_;
  const T* m1_0_;
  T* m1_1_;
  const T* m2_0_;
  T* m2_1_;
  const T* m3_0_;
  T* m3_1_;
  status_of<T> status;
  using sum = real_t<T>;
  struct column_state {
    bool active;
    T v0;
    T v1;
  };

  WL_DEVICE column_state column(i64 c) const {
    if (!status.is_running(c))
      return {false, T(0), T(0)};
    const T e0 = (h0_[c] / m0_0_[c]);
    const T e1 = (h1_[c] - (e0 * m1_0_[c]));
    const T e2 = (f1_[c] / e1);
    return {true, (((e1 == real_t<T>(0.0)) || !finite(e2)) ? T(real_t<T>(0.0)) : T(e2)), e0};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T x_i = x_(i, c);
    const T u1_i = u1_(i, c);
    const T u0_i = u0_(i, c);
    const T e3 = (u1_i - (s.v1 * u0_i));
    const T new_x = (x_i + (s.v0 * e3));
    const T r_i = r_(i, c);
    const T g1_i = g1_(i, c);
    const T g0_i = g0_(i, c);
    const T e8 = (g1_i - (s.v1 * g0_i));
    const T new_r = (r_i - (s.v0 * e8));
    x_(i, c) = new_x;
    r_(i, c) = new_r;
    g1_(i, c) = e8;
    u1_(i, c) = e3;
    return real_t<T>(0);
  }
  WL_DEVICE void finish(i64 c, sum) const {
    const T e0 = (h0_[c] / m0_0_[c]);
    const T e1 = (h1_[c] - (e0 * m1_0_[c]));
    const T new_m1_1 = e1;
    const T new_f1 = T(real_t<T>(0.0));
    const T e4 = (h2_[c] - (e0 * m2_0_[c]));
    const T new_m2_1 = e4;
    const T e6 = (f1_[c] / e1);
    const T e7 = (((e1 == real_t<T>(0.0)) || !finite(e6)) ? T(real_t<T>(0.0)) : T(e6));
    const T new_f2 = (f2_[c] - (e7 * e4));
    const T e9 = (h3_[c] - (e0 * m3_0_[c]));
    const T new_m3_1 = e9;
    const T new_f3 = (f3_[c] - (e7 * e9));
    m1_1_[c] = new_m1_1;
    f1_[c] = new_f1;
    m2_1_[c] = new_m2_1;
    f2_[c] = new_f2;
    m3_1_[c] = new_m3_1;
    f3_[c] = new_f3;
    if (!(finite(f1_[c]) && finite(e1)))
      status.halt(c, NOT_FINITE);
    else if ((e1 == real_t<T>(0.0)) || !finite(e6))
      status.halt(c, BREAKDOWN);
  }
};

// Make g_2, u_2 biorthogonal to p_0, p_1; x += beta u_2, r -= beta g_2; column 2 of M and f
template <class T>
struct idr_update_2 {
  mat<T> x_;
  mat<T> r_;
  mat<const T> g0_;
  mat<const T> u0_;
  mat<const T> g1_;
  mat<const T> u1_;
  mat<T> g2_;
  mat<T> u2_;
  const T* h0_;
  const T* h1_;
  T* f2_;
  const T* h2_;
  T* f3_;
  const T* h3_;
  const T* m0_0_;
  const T* m1_0_;
  const T* m1_1_;
  const T* m2_0_;
  const T* m2_1_;
  T* m2_2_;
  const T* m3_0_;
  const T* m3_1_;
  T* m3_2_;
  status_of<T> status;
  using sum = real_t<T>;
  struct column_state {
    bool active;
    T v0;
    T v1;
    T v2;
  };

  WL_DEVICE column_state column(i64 c) const {
    if (!status.is_running(c))
      return {false, T(0), T(0), T(0)};
    const T e0 = (h0_[c] / m0_0_[c]);
    const T e1 = ((h1_[c] - (m1_0_[c] * e0)) / m1_1_[c]);
    const T e2 = ((h2_[c] - (e0 * m2_0_[c])) - (e1 * m2_1_[c]));
    const T e3 = (f2_[c] / e2);
    return {true, (((e2 == real_t<T>(0.0)) || !finite(e3)) ? T(real_t<T>(0.0)) : T(e3)), e0, e1};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T x_i = x_(i, c);
    const T u2_i = u2_(i, c);
    const T u0_i = u0_(i, c);
    const T u1_i = u1_(i, c);
    const T e4 = ((u2_i - (s.v1 * u0_i)) - (s.v2 * u1_i));
    const T new_x = (x_i + (s.v0 * e4));
    const T r_i = r_(i, c);
    const T g2_i = g2_(i, c);
    const T g0_i = g0_(i, c);
    const T g1_i = g1_(i, c);
    const T e10 = ((g2_i - (s.v1 * g0_i)) - (s.v2 * g1_i));
    const T new_r = (r_i - (s.v0 * e10));
    x_(i, c) = new_x;
    r_(i, c) = new_r;
    g2_(i, c) = e10;
    u2_(i, c) = e4;
    return real_t<T>(0);
  }
  WL_DEVICE void finish(i64 c, sum) const {
    const T e0 = (h0_[c] / m0_0_[c]);
    const T e1 = ((h1_[c] - (m1_0_[c] * e0)) / m1_1_[c]);
    const T e2 = ((h2_[c] - (e0 * m2_0_[c])) - (e1 * m2_1_[c]));
    const T new_m2_2 = e2;
    const T new_f2 = T(real_t<T>(0.0));
    const T e5 = ((h3_[c] - (e0 * m3_0_[c])) - (e1 * m3_1_[c]));
    const T new_m3_2 = e5;
    const T e7 = (f2_[c] / e2);
    const T new_f3 = (f3_[c] - ((((e2 == real_t<T>(0.0)) || !finite(e7)) ? T(real_t<T>(0.0)) : T(e7)) * e5));
    m2_2_[c] = new_m2_2;
    f2_[c] = new_f2;
    m3_2_[c] = new_m3_2;
    f3_[c] = new_f3;
    if (!(finite(f2_[c]) && finite(e2)))
      status.halt(c, NOT_FINITE);
    else if ((e2 == real_t<T>(0.0)) || !finite(e7))
      status.halt(c, BREAKDOWN);
  }
};

// Make g_3, u_3 biorthogonal to p_0 .. p_2; x += beta u_3, r -= beta g_3; column 3 of M, f
template <class T>
struct idr_update_3 {
  mat<T> x_;
  mat<T> r_;
  mat<const T> g0_;
  mat<const T> u0_;
  mat<const T> g1_;
  mat<const T> u1_;
  mat<const T> g2_;
  mat<const T> u2_;
  mat<T> g3_;
  mat<T> u3_;
  const T* h0_;
  const T* h1_;
  const T* h2_;
  T* f3_;
  const T* h3_;
  const T* m0_0_;
  const T* m1_0_;
  const T* m1_1_;
  const T* m2_0_;
  const T* m2_1_;
  const T* m2_2_;
  const T* m3_0_;
  const T* m3_1_;
  const T* m3_2_;
  T* m3_3_;
  status_of<T> status;
  using sum = real_t<T>;
  struct column_state {
    bool active;
    T v0;
    T v1;
    T v2;
    T v3;
  };

  WL_DEVICE column_state column(i64 c) const {
    if (!status.is_running(c))
      return {false, T(0), T(0), T(0), T(0)};
    const T e0 = (h0_[c] / m0_0_[c]);
    const T e1 = ((h1_[c] - (m1_0_[c] * e0)) / m1_1_[c]);
    const T e2 = (((h2_[c] - (m2_0_[c] * e0)) - (m2_1_[c] * e1)) / m2_2_[c]);
    const T e3 = (((h3_[c] - (e0 * m3_0_[c])) - (e1 * m3_1_[c])) - (e2 * m3_2_[c]));
    const T e4 = (f3_[c] / e3);
    return {true, (((e3 == real_t<T>(0.0)) || !finite(e4)) ? T(real_t<T>(0.0)) : T(e4)), e0, e1, e2};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T x_i = x_(i, c);
    const T u3_i = u3_(i, c);
    const T u0_i = u0_(i, c);
    const T u1_i = u1_(i, c);
    const T u2_i = u2_(i, c);
    const T e5 = (((u3_i - (s.v1 * u0_i)) - (s.v2 * u1_i)) - (s.v3 * u2_i));
    const T new_x = (x_i + (s.v0 * e5));
    const T r_i = r_(i, c);
    const T g3_i = g3_(i, c);
    const T g0_i = g0_(i, c);
    const T g1_i = g1_(i, c);
    const T g2_i = g2_(i, c);
    const T e12 = (((g3_i - (s.v1 * g0_i)) - (s.v2 * g1_i)) - (s.v3 * g2_i));
    const T new_r = (r_i - (s.v0 * e12));
    x_(i, c) = new_x;
    r_(i, c) = new_r;
    g3_(i, c) = e12;
    u3_(i, c) = e5;
    return real_t<T>(0);
  }
  WL_DEVICE void finish(i64 c, sum) const {
    const T e0 = (h0_[c] / m0_0_[c]);
    const T e1 = ((h1_[c] - (m1_0_[c] * e0)) / m1_1_[c]);
    const T e2 = (((h3_[c] - (e0 * m3_0_[c])) - (e1 * m3_1_[c])) - ((((h2_[c] - (m2_0_[c] * e0)) - (m2_1_[c] * e1)) / m2_2_[c]) * m3_2_[c]));
    const T new_m3_3 = e2;
    const T new_f3 = T(real_t<T>(0.0));
    m3_3_[c] = new_m3_3;
    f3_[c] = new_f3;
    if (!(finite(f3_[c]) && finite(e2)))
      status.halt(c, NOT_FINITE);
    else if ((e2 == real_t<T>(0.0)) || !finite((f3_[c] / e2)))
      status.halt(c, BREAKDOWN);
  }
};

// omega = <t, r> / <t, t>, increased if t and r are almost orthogonal
template <class T>
struct idr_stabilize {
  mat<const T> r_;
  mat<const T> t_;
  T* omega_;
  status_of<T> status;
  struct sum {
    T v0;
    real_t<T> v1;
    real_t<T> v2;
    WL_DEVICE sum& operator+=(sum o) {
      v0 += o.v0;
      v1 += o.v1;
      v2 += o.v2;
      return *this;
    }
    template <class V>
    WL_DEVICE void each(const V& visit) {
      each_number(v0, visit);
      each_number(v1, visit);
      each_number(v2, visit);
    }
  };
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T t_i = t_(i, c);
    const T r_i = r_(i, c);
    return {(conj(t_i) * r_i), square(t_i), square(r_i)};
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const real_t<T> e0 = square_root(total.v2);
    const real_t<T> e1 = (magnitude(total.v0) / (square_root(total.v1) * e0));
    const T e2 = ((total.v1 > real_t<T>(0.0)) ? T((total.v0 / total.v1)) : T(real_t<T>(0.0)));
    const T new_omega = (((e1 < real_t<T>(0.7)) && (e1 > real_t<T>(0.0))) ? T(((real_t<T>(0.7) / e1) * e2)) : T(e2));
    omega_[c] = new_omega;
    if (!(finite(total.v0) && finite(total.v1)))
      status.halt(c, NOT_FINITE);
    else if ((real(e0) > real_t<T>(0.0)) && (e2 == real_t<T>(0.0)))
      status.halt(c, BREAKDOWN);
  }
};

// x += omega z, r -= omega t, f = P^H r; observes |r|
template <class T>
struct idr_finish {
  mat<T> x_;
  mat<T> r_;
  mat<const T> z_;
  mat<const T> t_;
  const T* p0_;
  const T* p1_;
  const T* p2_;
  const T* p3_;
  T* f0_;
  T* f1_;
  T* f2_;
  T* f3_;
  const T* omega_;
  status_of<T> status;
  struct sum {
    T v0;
    T v1;
    T v2;
    T v3;
    real_t<T> v4;
    WL_DEVICE sum& operator+=(sum o) {
      v0 += o.v0;
      v1 += o.v1;
      v2 += o.v2;
      v3 += o.v3;
      v4 += o.v4;
      return *this;
    }
    template <class V>
    WL_DEVICE void each(const V& visit) {
      each_number(v0, visit);
      each_number(v1, visit);
      each_number(v2, visit);
      each_number(v3, visit);
      each_number(v4, visit);
    }
  };
  struct column_state {
    bool active;
    T omega_;
  };

  WL_DEVICE column_state column(i64 c) const {
    const bool active = status.is_running(c);
    return {active, active ? omega_[c] : T(0)};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T x_i = x_(i, c);
    const T z_i = z_(i, c);
    const T new_x = (x_i + (s.omega_ * z_i));
    const T r_i = r_(i, c);
    const T t_i = t_(i, c);
    const T new_r = (r_i - (s.omega_ * t_i));
    const T p0_i = p0_[i];
    const T p1_i = p1_[i];
    const T p2_i = p2_[i];
    const T p3_i = p3_[i];
    x_(i, c) = new_x;
    r_(i, c) = new_r;
    return {(conj((p0_i * real_t<T>(1.0))) * new_r), (conj((p1_i * real_t<T>(1.0))) * new_r), (conj((p2_i * real_t<T>(1.0))) * new_r), (conj((p3_i * real_t<T>(1.0))) * new_r), square(new_r)};
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const T new_f0 = total.v0;
    const T new_f1 = total.v1;
    const T new_f2 = total.v2;
    const T new_f3 = total.v3;
    f0_[c] = new_f0;
    f1_[c] = new_f1;
    f2_[c] = new_f2;
    f3_[c] = new_f3;
    status.observe(c, square_root(total.v4));
  }
};

namespace {

// g_i = u_i = 0, M = I, omega = 1, f = P^H r
struct idr_start_entry {
  static constexpr const char* operation = "idr.start";
  static constexpr const char* symbol = "idr_start";
  static constexpr const char* names[] = {
      "r",
      "g0",
      "u0",
      "g1",
      "u1",
      "g2",
      "u2",
      "g3",
      "u3",
      "p0",
      "p1",
      "p2",
      "p3",
      "f0",
      "f1",
      "f2",
      "f3",
      "m0_0",
      "m1_0",
      "m1_1",
      "m2_0",
      "m2_1",
      "m2_2",
      "m3_0",
      "m3_1",
      "m3_2",
      "m3_3",
      "omega",
      "status",
  };
  static constexpr bool by_row = true;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.r_.ld == ld && f.g0_.ld == ld && f.u0_.ld == ld && f.g1_.ld == ld && f.u1_.ld == ld && f.g2_.ld == ld && f.u2_.ld == ld && f.g3_.ld == ld && f.u3_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.r_.ld = f.g0_.ld = f.u0_.ld = f.g1_.ld = f.u1_.ld = f.g2_.ld = f.u2_.ld = f.g3_.ld = f.u3_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const idr_start<T> body{
          call.block<const T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<T>(2, n, k),
          call.block<T>(3, n, k),
          call.block<T>(4, n, k),
          call.block<T>(5, n, k),
          call.block<T>(6, n, k),
          call.block<T>(7, n, k),
          call.block<T>(8, n, k),
          call.contiguous<const T>(9, n),
          call.contiguous<const T>(10, n),
          call.contiguous<const T>(11, n),
          call.contiguous<const T>(12, n),
          call.contiguous<T>(13, k),
          call.contiguous<T>(14, k),
          call.contiguous<T>(15, k),
          call.contiguous<T>(16, k),
          call.contiguous<T>(17, k),
          call.contiguous<T>(18, k),
          call.contiguous<T>(19, k),
          call.contiguous<T>(20, k),
          call.contiguous<T>(21, k),
          call.contiguous<T>(22, k),
          call.contiguous<T>(23, k),
          call.contiguous<T>(24, k),
          call.contiguous<T>(25, k),
          call.contiguous<T>(26, k),
          call.contiguous<T>(27, k),
          call.status<T>(28, k),
      };
      call.submit(n * k, Map<idr_start<T>, idr_start_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// u = omega (r - sum_i c_i g_i) + sum_i c_i u_i with M c = f
struct idr_extend_entry {
  static constexpr const char* operation = "idr.extend";
  static constexpr const char* symbol = "idr_extend";
  static constexpr const char* names[] = {
      "r",
      "u",
      "g0",
      "u0",
      "g1",
      "u1",
      "g2",
      "u2",
      "g3",
      "u3",
      "f0",
      "f1",
      "f2",
      "f3",
      "m0_0",
      "m1_0",
      "m1_1",
      "m2_0",
      "m2_1",
      "m2_2",
      "m3_0",
      "m3_1",
      "m3_2",
      "m3_3",
      "omega",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.r_.ld == ld && f.u_.ld == ld && f.g0_.ld == ld && f.u0_.ld == ld && f.g1_.ld == ld && f.u1_.ld == ld && f.g2_.ld == ld && f.u2_.ld == ld && f.g3_.ld == ld && f.u3_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.r_.ld = f.u_.ld = f.g0_.ld = f.u0_.ld = f.g1_.ld = f.u1_.ld = f.g2_.ld = f.u2_.ld = f.g3_.ld = f.u3_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const idr_extend<T> body{
          call.block<const T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<const T>(2, n, k),
          call.block<const T>(3, n, k),
          call.block<const T>(4, n, k),
          call.block<const T>(5, n, k),
          call.block<const T>(6, n, k),
          call.block<const T>(7, n, k),
          call.block<const T>(8, n, k),
          call.block<const T>(9, n, k),
          call.contiguous<const T>(10, k),
          call.contiguous<const T>(11, k),
          call.contiguous<const T>(12, k),
          call.contiguous<const T>(13, k),
          call.contiguous<const T>(14, k),
          call.contiguous<const T>(15, k),
          call.contiguous<const T>(16, k),
          call.contiguous<const T>(17, k),
          call.contiguous<const T>(18, k),
          call.contiguous<const T>(19, k),
          call.contiguous<const T>(20, k),
          call.contiguous<const T>(21, k),
          call.contiguous<const T>(22, k),
          call.contiguous<const T>(23, k),
          call.contiguous<const T>(24, k),
          call.status<T>(25, k),
      };
      call.submit(n * k, Map<idr_extend<T>, idr_extend_entry>(body, n, k));
    });
    return none_object();
  }
};

// v = r - sum_i c_i g_i with M c = f
struct idr_reduce_entry {
  static constexpr const char* operation = "idr.reduce";
  static constexpr const char* symbol = "idr_reduce";
  static constexpr const char* names[] = {
      "r",
      "v",
      "g0",
      "g1",
      "g2",
      "g3",
      "f0",
      "f1",
      "f2",
      "f3",
      "m0_0",
      "m1_0",
      "m1_1",
      "m2_0",
      "m2_1",
      "m2_2",
      "m3_0",
      "m3_1",
      "m3_2",
      "m3_3",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.r_.ld == ld && f.v_.ld == ld && f.g0_.ld == ld && f.g1_.ld == ld && f.g2_.ld == ld && f.g3_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.r_.ld = f.v_.ld = f.g0_.ld = f.g1_.ld = f.g2_.ld = f.g3_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const idr_reduce<T> body{
          call.block<const T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<const T>(2, n, k),
          call.block<const T>(3, n, k),
          call.block<const T>(4, n, k),
          call.block<const T>(5, n, k),
          call.contiguous<const T>(6, k),
          call.contiguous<const T>(7, k),
          call.contiguous<const T>(8, k),
          call.contiguous<const T>(9, k),
          call.contiguous<const T>(10, k),
          call.contiguous<const T>(11, k),
          call.contiguous<const T>(12, k),
          call.contiguous<const T>(13, k),
          call.contiguous<const T>(14, k),
          call.contiguous<const T>(15, k),
          call.contiguous<const T>(16, k),
          call.contiguous<const T>(17, k),
          call.contiguous<const T>(18, k),
          call.contiguous<const T>(19, k),
          call.status<T>(20, k),
      };
      call.submit(n * k, Map<idr_reduce<T>, idr_reduce_entry>(body, n, k));
    });
    return none_object();
  }
};

// u = omega z + sum_i c_i u_i with M c = f
struct idr_expand_entry {
  static constexpr const char* operation = "idr.expand";
  static constexpr const char* symbol = "idr_expand";
  static constexpr const char* names[] = {
      "z",
      "u",
      "u0",
      "u1",
      "u2",
      "u3",
      "f0",
      "f1",
      "f2",
      "f3",
      "m0_0",
      "m1_0",
      "m1_1",
      "m2_0",
      "m2_1",
      "m2_2",
      "m3_0",
      "m3_1",
      "m3_2",
      "m3_3",
      "omega",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.z_.ld == ld && f.u_.ld == ld && f.u0_.ld == ld && f.u1_.ld == ld && f.u2_.ld == ld && f.u3_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.z_.ld = f.u_.ld = f.u0_.ld = f.u1_.ld = f.u2_.ld = f.u3_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const idr_expand<T> body{
          call.block<const T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<const T>(2, n, k),
          call.block<const T>(3, n, k),
          call.block<const T>(4, n, k),
          call.block<const T>(5, n, k),
          call.contiguous<const T>(6, k),
          call.contiguous<const T>(7, k),
          call.contiguous<const T>(8, k),
          call.contiguous<const T>(9, k),
          call.contiguous<const T>(10, k),
          call.contiguous<const T>(11, k),
          call.contiguous<const T>(12, k),
          call.contiguous<const T>(13, k),
          call.contiguous<const T>(14, k),
          call.contiguous<const T>(15, k),
          call.contiguous<const T>(16, k),
          call.contiguous<const T>(17, k),
          call.contiguous<const T>(18, k),
          call.contiguous<const T>(19, k),
          call.contiguous<const T>(20, k),
          call.status<T>(21, k),
      };
      call.submit(n * k, Map<idr_expand<T>, idr_expand_entry>(body, n, k));
    });
    return none_object();
  }
};

// h_i = <p_i, g>
struct idr_project_entry {
  static constexpr const char* operation = "idr.project";
  static constexpr const char* symbol = "idr_project";
  static constexpr const char* names[] = {
      "g",
      "p0",
      "p1",
      "p2",
      "p3",
      "h0",
      "h1",
      "h2",
      "h3",
      "status",
  };
  static constexpr bool by_row = true;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.g_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.g_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const idr_project<T> body{
          call.block<const T>(0, n, k),
          call.contiguous<const T>(1, n),
          call.contiguous<const T>(2, n),
          call.contiguous<const T>(3, n),
          call.contiguous<const T>(4, n),
          call.contiguous<T>(5, k),
          call.contiguous<T>(6, k),
          call.contiguous<T>(7, k),
          call.contiguous<T>(8, k),
          call.status<T>(9, k),
      };
      call.submit(n * k, Map<idr_project<T>, idr_project_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// x += beta u_0, r -= beta g_0 with beta = f_0 / h_0; column 0 of M and f follow
struct idr_update_0_entry {
  static constexpr const char* operation = "idr.update_0";
  static constexpr const char* symbol = "idr_update_0";
  static constexpr const char* names[] = {
      "x",
      "r",
      "g0",
      "u0",
      "f0",
      "h0",
      "f1",
      "h1",
      "f2",
      "h2",
      "f3",
      "h3",
      "m0_0",
      "m1_0",
      "m2_0",
      "m3_0",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x_.ld == ld && f.r_.ld == ld && f.g0_.ld == ld && f.u0_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x_.ld = f.r_.ld = f.g0_.ld = f.u0_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const idr_update_0<T> body{
          call.block<T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<const T>(2, n, k),
          call.block<const T>(3, n, k),
          call.contiguous<T>(4, k),
          call.contiguous<const T>(5, k),
          call.contiguous<T>(6, k),
          call.contiguous<const T>(7, k),
          call.contiguous<T>(8, k),
          call.contiguous<const T>(9, k),
          call.contiguous<T>(10, k),
          call.contiguous<const T>(11, k),
          call.contiguous<T>(12, k),
          call.contiguous<T>(13, k),
          call.contiguous<T>(14, k),
          call.contiguous<T>(15, k),
          call.status<T>(16, k),
      };
      call.submit(n * k, Map<idr_update_0<T>, idr_update_0_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// Make g_1, u_1 biorthogonal to p_0; x += beta u_1, r -= beta g_1; column 1 of M and f
struct idr_update_1_entry {
  static constexpr const char* operation = "idr.update_1";
  static constexpr const char* symbol = "idr_update_1";
  static constexpr const char* names[] = {
      "x",
      "r",
      "g0",
      "u0",
      "g1",
      "u1",
      "h0",
      "f1",
      "h1",
      "f2",
      "h2",
      "f3",
      "h3",
      "m0_0",
      "m1_0",
      "m1_1",
      "m2_0",
      "m2_1",
      "m3_0",
      "m3_1",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x_.ld == ld && f.r_.ld == ld && f.g0_.ld == ld && f.u0_.ld == ld && f.g1_.ld == ld && f.u1_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x_.ld = f.r_.ld = f.g0_.ld = f.u0_.ld = f.g1_.ld = f.u1_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const idr_update_1<T> body{
          call.block<T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<const T>(2, n, k),
          call.block<const T>(3, n, k),
          call.block<T>(4, n, k),
          call.block<T>(5, n, k),
          call.contiguous<const T>(6, k),
          call.contiguous<T>(7, k),
          call.contiguous<const T>(8, k),
          call.contiguous<T>(9, k),
          call.contiguous<const T>(10, k),
          call.contiguous<T>(11, k),
          call.contiguous<const T>(12, k),
          call.contiguous<const T>(13, k),
          call.contiguous<const T>(14, k),
          call.contiguous<T>(15, k),
          call.contiguous<const T>(16, k),
          call.contiguous<T>(17, k),
          call.contiguous<const T>(18, k),
          call.contiguous<T>(19, k),
          call.status<T>(20, k),
      };
      call.submit(n * k, Map<idr_update_1<T>, idr_update_1_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// Make g_2, u_2 biorthogonal to p_0, p_1; x += beta u_2, r -= beta g_2; column 2 of M and f
struct idr_update_2_entry {
  static constexpr const char* operation = "idr.update_2";
  static constexpr const char* symbol = "idr_update_2";
  static constexpr const char* names[] = {
      "x",
      "r",
      "g0",
      "u0",
      "g1",
      "u1",
      "g2",
      "u2",
      "h0",
      "h1",
      "f2",
      "h2",
      "f3",
      "h3",
      "m0_0",
      "m1_0",
      "m1_1",
      "m2_0",
      "m2_1",
      "m2_2",
      "m3_0",
      "m3_1",
      "m3_2",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x_.ld == ld && f.r_.ld == ld && f.g0_.ld == ld && f.u0_.ld == ld && f.g1_.ld == ld && f.u1_.ld == ld && f.g2_.ld == ld && f.u2_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x_.ld = f.r_.ld = f.g0_.ld = f.u0_.ld = f.g1_.ld = f.u1_.ld = f.g2_.ld = f.u2_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const idr_update_2<T> body{
          call.block<T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<const T>(2, n, k),
          call.block<const T>(3, n, k),
          call.block<const T>(4, n, k),
          call.block<const T>(5, n, k),
          call.block<T>(6, n, k),
          call.block<T>(7, n, k),
          call.contiguous<const T>(8, k),
          call.contiguous<const T>(9, k),
          call.contiguous<T>(10, k),
          call.contiguous<const T>(11, k),
          call.contiguous<T>(12, k),
          call.contiguous<const T>(13, k),
          call.contiguous<const T>(14, k),
          call.contiguous<const T>(15, k),
          call.contiguous<const T>(16, k),
          call.contiguous<const T>(17, k),
          call.contiguous<const T>(18, k),
          call.contiguous<T>(19, k),
          call.contiguous<const T>(20, k),
          call.contiguous<const T>(21, k),
          call.contiguous<T>(22, k),
          call.status<T>(23, k),
      };
      call.submit(n * k, Map<idr_update_2<T>, idr_update_2_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// Make g_3, u_3 biorthogonal to p_0 .. p_2; x += beta u_3, r -= beta g_3; column 3 of M, f
struct idr_update_3_entry {
  static constexpr const char* operation = "idr.update_3";
  static constexpr const char* symbol = "idr_update_3";
  static constexpr const char* names[] = {
      "x",
      "r",
      "g0",
      "u0",
      "g1",
      "u1",
      "g2",
      "u2",
      "g3",
      "u3",
      "h0",
      "h1",
      "h2",
      "f3",
      "h3",
      "m0_0",
      "m1_0",
      "m1_1",
      "m2_0",
      "m2_1",
      "m2_2",
      "m3_0",
      "m3_1",
      "m3_2",
      "m3_3",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x_.ld == ld && f.r_.ld == ld && f.g0_.ld == ld && f.u0_.ld == ld && f.g1_.ld == ld && f.u1_.ld == ld && f.g2_.ld == ld && f.u2_.ld == ld && f.g3_.ld == ld && f.u3_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x_.ld = f.r_.ld = f.g0_.ld = f.u0_.ld = f.g1_.ld = f.u1_.ld = f.g2_.ld = f.u2_.ld = f.g3_.ld = f.u3_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const idr_update_3<T> body{
          call.block<T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<const T>(2, n, k),
          call.block<const T>(3, n, k),
          call.block<const T>(4, n, k),
          call.block<const T>(5, n, k),
          call.block<const T>(6, n, k),
          call.block<const T>(7, n, k),
          call.block<T>(8, n, k),
          call.block<T>(9, n, k),
          call.contiguous<const T>(10, k),
          call.contiguous<const T>(11, k),
          call.contiguous<const T>(12, k),
          call.contiguous<T>(13, k),
          call.contiguous<const T>(14, k),
          call.contiguous<const T>(15, k),
          call.contiguous<const T>(16, k),
          call.contiguous<const T>(17, k),
          call.contiguous<const T>(18, k),
          call.contiguous<const T>(19, k),
          call.contiguous<const T>(20, k),
          call.contiguous<const T>(21, k),
          call.contiguous<const T>(22, k),
          call.contiguous<const T>(23, k),
          call.contiguous<T>(24, k),
          call.status<T>(25, k),
      };
      call.submit(n * k, Map<idr_update_3<T>, idr_update_3_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// omega = <t, r> / <t, t>, increased if t and r are almost orthogonal
struct idr_stabilize_entry {
  static constexpr const char* operation = "idr.stabilize";
  static constexpr const char* symbol = "idr_stabilize";
  static constexpr const char* names[] = {
      "r",
      "t",
      "omega",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.r_.ld == ld && f.t_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.r_.ld = f.t_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const idr_stabilize<T> body{
          call.block<const T>(0, n, k),
          call.block<const T>(1, n, k),
          call.contiguous<T>(2, k),
          call.status<T>(3, k),
      };
      call.submit(n * k, Map<idr_stabilize<T>, idr_stabilize_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// x += omega z, r -= omega t, f = P^H r; observes |r|
struct idr_finish_entry {
  static constexpr const char* operation = "idr.finish";
  static constexpr const char* symbol = "idr_finish";
  static constexpr const char* names[] = {
      "x",
      "r",
      "z",
      "t",
      "p0",
      "p1",
      "p2",
      "p3",
      "f0",
      "f1",
      "f2",
      "f3",
      "omega",
      "status",
  };
  static constexpr bool by_row = true;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x_.ld == ld && f.r_.ld == ld && f.z_.ld == ld && f.t_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x_.ld = f.r_.ld = f.z_.ld = f.t_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const idr_finish<T> body{
          call.block<T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<const T>(2, n, k),
          call.block<const T>(3, n, k),
          call.contiguous<const T>(4, n),
          call.contiguous<const T>(5, n),
          call.contiguous<const T>(6, n),
          call.contiguous<const T>(7, n),
          call.contiguous<T>(8, k),
          call.contiguous<T>(9, k),
          call.contiguous<T>(10, k),
          call.contiguous<T>(11, k),
          call.contiguous<const T>(12, k),
          call.status<T>(13, k),
      };
      call.submit(n * k, Map<idr_finish<T>, idr_finish_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

} // namespace

void add_idr_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<idr_start_entry>("idr_start", "36ded323c1d016f3"),
      method<idr_start_entry, Half::VISITING>("idr_start_visiting", "36ded323c1d016f3"),
      method<idr_start_entry, Half::FINISHING>("idr_start_finishing", "36ded323c1d016f3"),
      method<idr_extend_entry>("idr_extend", "3a0036fcece4bcfe"),
      method<idr_reduce_entry>("idr_reduce", "dde589e97a410d1a"),
      method<idr_expand_entry>("idr_expand", "cd260fb06d29faca"),
      method<idr_project_entry>("idr_project", "5634e020931ad05e"),
      method<idr_project_entry, Half::VISITING>("idr_project_visiting", "5634e020931ad05e"),
      method<idr_project_entry, Half::FINISHING>("idr_project_finishing", "5634e020931ad05e"),
      method<idr_update_0_entry>("idr_update_0", "a0175a3f2fc05735"),
      method<idr_update_0_entry, Half::VISITING>("idr_update_0_visiting", "a0175a3f2fc05735"),
      method<idr_update_0_entry, Half::FINISHING>("idr_update_0_finishing", "a0175a3f2fc05735"),
      method<idr_update_1_entry>("idr_update_1", "74712731348749d0"),
      method<idr_update_1_entry, Half::VISITING>("idr_update_1_visiting", "74712731348749d0"),
      method<idr_update_1_entry, Half::FINISHING>("idr_update_1_finishing", "74712731348749d0"),
      method<idr_update_2_entry>("idr_update_2", "99483078c6ee608c"),
      method<idr_update_2_entry, Half::VISITING>("idr_update_2_visiting", "99483078c6ee608c"),
      method<idr_update_2_entry, Half::FINISHING>("idr_update_2_finishing", "99483078c6ee608c"),
      method<idr_update_3_entry>("idr_update_3", "d2a72a4809a83565"),
      method<idr_update_3_entry, Half::VISITING>("idr_update_3_visiting", "d2a72a4809a83565"),
      method<idr_update_3_entry, Half::FINISHING>("idr_update_3_finishing", "d2a72a4809a83565"),
      method<idr_stabilize_entry>("idr_stabilize", "568594a8b664400d"),
      method<idr_stabilize_entry, Half::VISITING>("idr_stabilize_visiting", "568594a8b664400d"),
      method<idr_stabilize_entry, Half::FINISHING>("idr_stabilize_finishing", "568594a8b664400d"),
      method<idr_finish_entry>("idr_finish", "794f8896b236b282"),
      method<idr_finish_entry, Half::VISITING>("idr_finish_visiting", "794f8896b236b282"),
      method<idr_finish_entry, Half::FINISHING>("idr_finish_finishing", "794f8896b236b282"),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
