// Marks a function that compiles for GPU and CPU, with or without nvcc.
#pragma once

#ifdef __CUDACC__
#define STEPLADDER_HOST_DEVICE __host__ __device__
#else
#define STEPLADDER_HOST_DEVICE
#endif
