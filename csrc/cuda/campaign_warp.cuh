// A campaign's group is a warp.
#ifndef MMAPROBE_HOST
MMAPROBE_DEVICE Byte* aligned(Byte* shared) { return shared; }
MMAPROBE_DEVICE void meet() { __syncwarp(); }
#endif
