// What a campaign's kernel does of mma.sync: a group is a warp.
#ifndef MMAPROBE_HOST
MMAPROBE_DEVICE Byte* aligned(Byte* shared) { return shared; }
MMAPROBE_DEVICE void meet() { __syncwarp(); }

MMAPROBE_DEVICE void multiply_tiles(const Memory& memory, Byte*, int lane) {
  Registers of;
  const Operands given = batch_of(memory, Shape::tiles);
  load_all(given, 0, lane, of);
  __syncwarp();  // D goes where C was
  multiply(of);
  store_all(given, 0, lane, of);
}
#endif
