"""Datapaths for AMD forms that have no shipped parameters: sums of NVIDIA's over as many lanes and the same formats."""

from __future__ import annotations

from dataclasses import replace

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.parameters.datapath import Accumulator, Datapath, Exact, Fused, Products
from mmaprobe.parameters.lookup import datapath_for

LIKE = {
    ("f16", "f32"): "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    ("f16", "f16"): "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
    ("bf16", "f32"): "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
    ("e4m3", "f32"): "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3",
    ("u8", "s32"): "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32",
}


SCALED = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0"


def path_like(made: Instruction) -> Datapath:
    """One sum of all products and C."""
    home, name = ("sm_120a", SCALED) if made.scale else ("sm_90a", LIKE[made.a, made.d])
    path = datapath_for(home, instruction(name, home))
    lanes = Products(tuple(range(made.selected)))
    if isinstance(path.tree, Fused):
        terms = tuple(replace(path.tree.terms[0], of=node) for node in (Accumulator(), lanes))
        return replace(path, k=made.selected, tree=replace(path.tree, terms=terms))
    assert isinstance(path.tree, Exact)
    return replace(path, k=made.selected, tree=replace(path.tree, terms=(Accumulator(), lanes)))
