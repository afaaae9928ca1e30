// One call of XLA's foreign function interface: operands, results, attributes, errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "xla/ffi/api/c_api.h"

namespace wl {

// The call is not one that the handler takes, or its operands are invalid.
struct FfiError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class FfiCall {
  using i64 = std::int64_t;

public:
  explicit FfiCall(const XLA_FFI_CallFrame* frame) : frame_(*frame) {}

  i64 operands() const { return frame_.args.size; }
  const XLA_FFI_Buffer& operand(i64 at) const {
    if (at < 0 || at >= frame_.args.size || frame_.args.types[at] != XLA_FFI_ArgType_BUFFER)
      throw FfiError("expected an array as operand " + std::to_string(at));
    return *static_cast<const XLA_FFI_Buffer*>(frame_.args.args[at]);
  }
  const XLA_FFI_Buffer& result() const {
    if (frame_.rets.size != 1 || frame_.rets.types[0] != XLA_FFI_RetType_BUFFER)
      throw FfiError("expected one array as result");
    return *static_cast<const XLA_FFI_Buffer*>(frame_.rets.rets[0]);
  }

  i64 integer(std::string_view name) const {
    const auto* const scalar = static_cast<const XLA_FFI_Scalar*>(
        attribute(name, XLA_FFI_AttrType_SCALAR, XLA_FFI_DataType_S64));
    return *static_cast<const i64*>(scalar->value);
  }
  double real(std::string_view name) const {
    const auto* const scalar = static_cast<const XLA_FFI_Scalar*>(
        attribute(name, XLA_FFI_AttrType_SCALAR, XLA_FFI_DataType_F64));
    return *static_cast<const double*>(scalar->value);
  }
  std::string text(std::string_view name) const {
    const auto* const span = static_cast<const XLA_FFI_ByteSpan*>(
        attribute(name, XLA_FFI_AttrType_STRING, XLA_FFI_DataType_INVALID));
    return std::string(span->ptr, span->len);
  }

  // The stream of the call; nullptr on platforms without streams.
  void* stream() const {
    XLA_FFI_Stream_Get_Args args{};
    args.struct_size = XLA_FFI_Stream_Get_Args_STRUCT_SIZE;
    args.ctx = frame_.ctx;
    return succeeded(frame_.api->XLA_FFI_Stream_Get(&args)) ? args.stream : nullptr;
  }

  // The number of the device of the call; 0 on platforms without numbers.
  int device() const {
    XLA_FFI_DeviceOrdinal_Get_Args args{};
    args.struct_size = XLA_FFI_DeviceOrdinal_Get_Args_STRUCT_SIZE;
    args.ctx = frame_.ctx;
    return succeeded(frame_.api->XLA_FFI_DeviceOrdinal_Get(&args)) ? args.device_ordinal : 0;
  }

  // Hands an owner to the executable that is being made.
  inline XLA_FFI_Error* keep(std::shared_ptr<const void> held) const;

  XLA_FFI_Error* error(const char* message) const {
    XLA_FFI_Error_Create_Args args{};
    args.struct_size = XLA_FFI_Error_Create_Args_STRUCT_SIZE;
    args.message = message;
    args.errc = XLA_FFI_Error_Code_INTERNAL;
    return frame_.api->XLA_FFI_Error_Create(&args);
  }

private:
  const XLA_FFI_CallFrame& frame_;

  bool succeeded(XLA_FFI_Error* failed) const {
    if (failed == nullptr)
      return true;
    XLA_FFI_Error_Destroy_Args args{};
    args.struct_size = XLA_FFI_Error_Destroy_Args_STRUCT_SIZE;
    args.error = failed;
    frame_.api->XLA_FFI_Error_Destroy(&args);
    return false;
  }

  const void* attribute(std::string_view name, XLA_FFI_AttrType type,
                        XLA_FFI_DataType dtype) const {
    const XLA_FFI_Attrs& attributes = frame_.attrs;
    for (i64 i = 0; i < attributes.size; ++i) {
      if (std::string_view(attributes.names[i]->ptr, attributes.names[i]->len) != name)
        continue;
      const bool fits = attributes.types[i] == type &&
                        (type != XLA_FFI_AttrType_SCALAR ||
                         static_cast<const XLA_FFI_Scalar*>(attributes.attrs[i])->dtype == dtype);
      if (fits)
        return attributes.attrs[i];
      break;
    }
    throw FfiError("expected an attribute '" + std::string(name) + "' of another type");
  }
};

// The owner of the objects that an executable refers to. XLA keeps it as long as the executable:
// calls may still run when no object of Python refers to the executable.
struct FfiOwner {
  std::shared_ptr<const void> held;

  static void destroy(void* owner) { delete static_cast<FfiOwner*>(owner); }

  static inline XLA_FFI_TypeId id{0}; // XLA assigns it
  static inline XLA_FFI_TypeInfo info{XLA_FFI_TypeInfo_STRUCT_SIZE, nullptr, destroy};
};

inline XLA_FFI_Error* FfiCall::keep(std::shared_ptr<const void> held) const {
  XLA_FFI_State_Set_Args args{};
  args.struct_size = XLA_FFI_State_Set_Args_STRUCT_SIZE;
  args.ctx = frame_.ctx;
  args.stage = XLA_FFI_ExecutionStage_INSTANTIATE;
  args.type_id = &FfiOwner::id;
  args.state = new FfiOwner{std::move(held)};
  return frame_.api->XLA_FFI_State_Set(&args);
}

// Answers the question for the version of the interface, which XLA asks of every handler once.
inline bool answers_metadata(const XLA_FFI_CallFrame* frame, XLA_FFI_TypeId state) {
  XLA_FFI_Extension_Base* const extension = frame->extension_start;
  if (extension == nullptr || extension->type != XLA_FFI_Extension_Metadata)
    return false;
  XLA_FFI_Metadata& metadata = *reinterpret_cast<XLA_FFI_Metadata_Extension*>(extension)->metadata;
  metadata.api_version.major_version = XLA_FFI_API_MAJOR;
  metadata.api_version.minor_version = XLA_FFI_API_MINOR;
  metadata.state_type_id = state;
  return true;
}

// A handler as XLA calls it.
template <void (*BODY)(const FfiCall&)>
XLA_FFI_Error* ffi_handler(XLA_FFI_CallFrame* frame) noexcept {
  if (answers_metadata(frame, XLA_FFI_UNKNOWN_TYPE_ID))
    return nullptr;
  const FfiCall call(frame);
  try {
    BODY(call);
    return nullptr;
  } catch (const std::exception& error) {
    return call.error(error.what());
  }
}

// The handler that XLA calls when it makes an executable: the executable keeps the owner of a call.
template <std::shared_ptr<const void> (*FIND)(const FfiCall&)>
XLA_FFI_Error* ffi_instantiate(XLA_FFI_CallFrame* frame) noexcept {
  if (answers_metadata(frame, FfiOwner::id))
    return nullptr;
  const FfiCall call(frame);
  try {
    return call.keep(FIND(call));
  } catch (const std::exception& error) {
    return call.error(error.what());
  }
}

} // namespace wl
