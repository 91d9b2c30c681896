#!/bin/bash
# Builds ./probe from this tree (new kernels, in several shapes) and from the tree where the branch begins (old). Needs nvcc and git, no GPU.
set -e
cd "$(dirname "$0")"
ROOT=$(git rev-parse --show-toplevel)
F="-O3 -std=c++17 --fmad=false -gencode arch=compute_90,code=sm_90 -Xcompiler -ffp-contract=off"
rm -rf old new nosums nomax; mkdir old new
git -C "$ROOT" archive "$(git -C "$ROOT" merge-base HEAD origin/main)" src kernels | tar x -C old
cp -r "$ROOT/src" "$ROOT/kernels" new
sed -i 's/return value_bytes == 4 ? exact_shape{256, 4, 4, 2, EXACT_COLUMN_A_LANE, false}/return value_bytes == 4 ? exact_shape{SHAPE_T, SHAPE_B, SHAPE_V, 2, EXACT_COLUMN_A_LANE, SHAPE_A}/' new/kernels/tuning.h
grep -q SHAPE_T new/kernels/tuning.h
python3 - <<'P'
import shutil
for name in ("nosums", "nomax"):
    shutil.copytree("new", name)
    path = name + "/kernels/compare.cuh"
    s = open(path).read()
    if name == "nosums":
        part = "        down = add_down(down, d_down);\n        up = add_up(up, d);\n        high = fma(d, d, before);\n        low += fma(d, d, before - high);\n"
        assert part in s
        s = s.replace(part, "        (void)d_down, (void)before;\n", 1)
    else:
        i, j = s.index("    const uint32_t steps = largest_steps"), s.index("    if (!(down == up)")
        s = s[:i] + "    const uint32_t largest = f32_bits(most); const bool raises = false; (void)over; (void)fractions; (void)least; (void)units;\n" + s[j:]
    open(path, "w").write(s)
P
OBJ=; VARS=
one() { # name, tree, threads, blocks of a multiprocessor, vectors (of both arrays), loaded ahead
    nvcc $F -I$2/src -I$2 -DVARIANT=$1 -DSHAPE_T=$3 -DSHAPE_B=$4 -DSHAPE_V=$5 -DSHAPE_A=$6 -Xptxas -v -c variant.cu -o $1.o 2>$1.log || { cat $1.log; exit 1; }
    echo $1 $(grep -o "Used [0-9]* reg\|[0-9]* bytes spill stores" $1.log | tr '\n' ' ')
    OBJ="$OBJ $1.o"; VARS="$VARS V($1)"
}
one old old 0 0 0 0
one a new 256 4 4 false
one v_3 new 256 3 4 false
one v_3ahead new 256 3 4 true
one v_2x8 new 256 2 8 false
one v_3x8 new 256 3 8 false
one v_2ahead8 new 256 2 8 true
one v_128x8 new 128 8 4 false
one nosums_ nosums 256 4 4 false
one nomax_ nomax 256 4 4 false
echo "#define VARIANTS $VARS" >variants.h
nvcc $F -Inew/src -Inew -DSHAPE_T=256 -DSHAPE_B=4 -DSHAPE_V=4 -DSHAPE_A=false -include variants.h -c main.cu -o main.o
cc -O2 -DALLFOLD_VERSION='"0"' -c -Inew/src -o types.o new/src/base/types.c
nvcc -gencode arch=compute_90,code=sm_90 -o probe main.o $OBJ types.o
