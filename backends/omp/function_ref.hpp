// A callable by reference, without its type: loops that take one are compiled once for all callers.
#pragma once

#include <memory>
#include <type_traits>

namespace wl {

template <class Signature>
class FunctionRef;

// The callable must outlive the reference.
template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
public:
  template <class F, class = std::enable_if_t<!std::is_same_v<std::decay_t<F>, FunctionRef>>>
  FunctionRef(F&& f) // implicit, so that callers pass lambdas
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, Arguments... arguments) -> Result {
          return (*static_cast<std::remove_reference_t<F>*>(object))(arguments...);
        }) {}

  Result operator()(Arguments... arguments) const { return call_(object_, arguments...); }

private:
  void* object_;
  Result (*call_)(void*, Arguments...);
};

namespace detail {

template <class T>
struct not_deduced {
  using type = T;
};

} // namespace detail

// The type of a parameter that says nothing about the template's types.
template <class T>
using not_deduced = typename detail::not_deduced<T>::type;

} // namespace wl
