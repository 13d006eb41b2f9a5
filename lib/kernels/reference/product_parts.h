// One parallel loop over the columns of several products that share their rows: every thread gets the same number of
// pieces of all of them together, however narrow each is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/reference/threads.h"

namespace shardplan::kernels {

/// Columns [begin, end) of a part, for one of the blocks of rows.
struct PartPiece {
    std::size_t part = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t row_block = 0;
};

/// How the products are cut.
struct PieceGrid {
    std::int64_t width = 1;       ///< columns of a piece
    std::int64_t row_blocks = 1;  ///< neighbouring pieces have the same columns
    std::int64_t work = 0;        ///< multiply-adds per column
};

/// Calls visit(PartPiece) for all pieces. parts[i].n = columns
template <typename Part, typename Visit>
void for_each_piece(std::span<const Part> parts, const PieceGrid& grid, Visit visit) {
    std::vector<std::int64_t> ends;  // of the pieces of each part
    std::int64_t pieces = 0;
    std::int64_t columns = 0;
    for (const Part& part : parts) {
        pieces += (part.n + grid.width - 1) / grid.width * grid.row_blocks;
        columns += part.n;
        ends.push_back(pieces);
    }
#pragma omp parallel for schedule(static) if (worth_threads(columns * grid.work))
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
        const auto part = static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), piece) - ends.begin());
        const std::int64_t local = part == 0 ? piece : piece - ends[part - 1];
        const std::int64_t begin = local / grid.row_blocks * grid.width;
        visit(PartPiece{part, begin, std::min(parts[part].n, begin + grid.width), local % grid.row_blocks});
    }
}

}  // namespace shardplan::kernels
