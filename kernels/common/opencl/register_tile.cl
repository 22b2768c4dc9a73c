// Of kernels in which a work-group of LOCAL_X x LOCAL_Y work-items computes a tile of a matrix, and
// each work-item ROWS rows of it and a vector of WIDTH columns, in registers. STEP: of the tiles of
// the operands along K.
//
//     tile of TILE_M x TILE_N: work-item (y, x) has rows y · ROWS … and columns x · WIDTH …
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define VECTOR JOIN(float, WIDTH)
#define LOAD JOIN(vload, WIDTH)
#define STORE JOIN(vstore, WIDTH)
#define ITEMS (LOCAL_X * LOCAL_Y)
#define TILE_M (LOCAL_Y * ROWS)
#define TILE_N (LOCAL_X * WIDTH)
