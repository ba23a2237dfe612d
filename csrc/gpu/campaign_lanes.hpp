// What a campaign's kernel does of an instruction whose operands all lie in registers: a group is a warp or a wave.
#ifndef MMAPROBE_HOST
MMAPROBE_DEVICE void multiply_tiles(const Memory& memory, Byte*, int lane) {
    Registers of;
    const Operands given = batch_of(memory, Shape::tiles / Shape::blocks);
    load_all(given, 0, lane, of);
    meet();  // D goes where C was
    multiply(of);
    store_all(given, 0, lane, of);
}
#endif
