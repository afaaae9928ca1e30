# Cross-compiling for aarch64 with Debian's g++-aarch64-linux-gnu; packaging/aarch64.py sets the folder.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
# Its headers of Python; those of the C library are the cross compiler's own.
set(root $ENV{WOLLEMI_AARCH64_ROOT})
set(Python_INCLUDE_DIR ${root}/usr/include/python3.11)
set(CMAKE_CXX_FLAGS_INIT "-idirafter ${root}/usr/include")
set(PYTHON_MODULE_EXTENSION .cpython-311-aarch64-linux-gnu.so)
set(PYTHON_MODULE_DEBUG_POSTFIX "")
set(PYTHON_IS_DEBUG OFF)
