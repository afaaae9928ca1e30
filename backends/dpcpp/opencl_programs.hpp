// Machine code of programs: it is taken from an OpenCL driver, and a later process loads it again.
//
// The SYCL runtime has loaded the OpenCL library: its functions are looked up there, and no library
// is linked.
#pragma once

#include <CL/cl.h>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <stdexcept>
#include <string>
#include <sycl/backend.hpp>
#include <sycl/sycl.hpp>
#include <vector>

namespace wl {

namespace opencl {

template <class F>
F* function(const char* name) {
  static void* const library = dlopen("libOpenCL.so.1", RTLD_LAZY | RTLD_NOLOAD);
  void* const found = library != nullptr ? dlsym(library, name) : nullptr;
  if (found == nullptr)
    throw std::runtime_error(std::string("the OpenCL library has no ") + name);
  return reinterpret_cast<F*>(found);
}

inline void require(cl_int code, const char* name) {
  if (code != CL_SUCCESS)
    throw std::runtime_error(std::string(name) + ": error " + std::to_string(code) + " of OpenCL");
}

} // namespace opencl

// The programs of OpenCL that a program of SYCL consists of.
class opencl_programs {
public:
  static bool possible(const sycl::context& context) {
    return context.get_backend() == sycl::backend::opencl && context.get_devices().size() == 1;
  }

  // Programs that SYCL has compiled.
  explicit opencl_programs(const sycl::kernel_bundle<sycl::bundle_state::executable>& compiled)
      : context_(compiled.get_context()),
        programs_(sycl::get_native<sycl::backend::opencl>(compiled)) {}

  // Programs in the bytes that `machine_code` has returned.
  opencl_programs(const sycl::context& context, const char* bytes, std::size_t size)
      : context_(context) {
    const auto create =
        opencl::function<decltype(clCreateProgramWithBinary)>("clCreateProgramWithBinary");
    const auto build = opencl::function<decltype(clBuildProgram)>("clBuildProgram");
    const cl_context native = sycl::get_native<sycl::backend::opencl>(context);
    const cl_device_id device =
        sycl::get_native<sycl::backend::opencl>(context.get_devices().front());
    const char* const end = bytes + size;
    while (bytes != end) {
      std::uint64_t length = 0;
      if (end - bytes < static_cast<std::ptrdiff_t>(sizeof length))
        throw std::runtime_error("the machine code is cut short");
      std::memcpy(&length, bytes, sizeof length);
      bytes += sizeof length;
      if (length > static_cast<std::uint64_t>(end - bytes))
        throw std::runtime_error("the machine code is cut short");
      const auto* code = reinterpret_cast<const unsigned char*>(bytes);
      const std::size_t count = length;
      cl_int error = CL_SUCCESS;
      programs_.push_back(create(native, 1, &device, &count, &code, nullptr, &error));
      opencl::require(error, "clCreateProgramWithBinary");
      opencl::require(build(programs_.back(), 1, &device, "", nullptr, nullptr), "clBuildProgram");
      bytes += length;
    }
  }

  // The machine code of each program after its length.
  [[nodiscard]] std::string machine_code() const {
    const auto ask = opencl::function<decltype(clGetProgramInfo)>("clGetProgramInfo");
    std::string all;
    for (const cl_program program : programs_) {
      std::size_t length = 0;
      opencl::require(ask(program, CL_PROGRAM_BINARY_SIZES, sizeof length, &length, nullptr),
                      "clGetProgramInfo");
      std::string code(length, '\0');
      auto* to = reinterpret_cast<unsigned char*>(code.data());
      opencl::require(ask(program, CL_PROGRAM_BINARIES, sizeof to, &to, nullptr),
                      "clGetProgramInfo");
      const std::uint64_t stated = length;
      all.append(reinterpret_cast<const char*>(&stated), sizeof stated);
      all.append(code);
    }
    return all;
  }

  // The kernel with a name in the source text. SYCL adds a prefix to the name, and may remove
  // arguments that the kernel does not use: such a kernel is refused.
  [[nodiscard]] sycl::kernel kernel(const std::string& name, std::size_t arguments) const {
    const auto create = opencl::function<decltype(clCreateKernel)>("clCreateKernel");
    const auto ask = opencl::function<decltype(clGetKernelInfo)>("clGetKernelInfo");
    const std::string full = "__sycl_kernel_" + name;
    for (const cl_program program : programs_) {
      cl_int error = CL_SUCCESS;
      const cl_kernel found = create(program, full.c_str(), &error);
      if (error == CL_INVALID_KERNEL_NAME)
        continue;
      opencl::require(error, "clCreateKernel");
      cl_uint count = 0;
      opencl::require(ask(found, CL_KERNEL_NUM_ARGS, sizeof count, &count, nullptr),
                      "clGetKernelInfo");
      if (count != arguments)
        throw std::runtime_error(name + " has " + std::to_string(count) + " arguments instead of " +
                                 std::to_string(arguments));
      return sycl::make_kernel<sycl::backend::opencl>(found, context_);
    }
    throw std::runtime_error("no program has " + name);
  }

private:
  sycl::context context_;
  std::vector<cl_program> programs_;
};

} // namespace wl
