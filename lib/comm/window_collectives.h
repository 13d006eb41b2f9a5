// The collectives of a group whose members share a Window, as Groups checks and counts them: shapes fit, n > 1, no
// tensor is empty. Results are those of the message-passing path to the bit. No staging: blocks of any dimension go
// straight between the tensors and the window. Data longer than a half go in pieces, one meeting each.
#pragma once

#include <cstdint>
#include <span>

#include "comm/ordered_reduce.h"
#include "comm/window.h"
#include "tensor/view.h"

namespace shardplan::comm {

void window_all_gather(Window& window, int dim, const tensor::ConstView& in, const tensor::View& out);

void window_reduce_scatter(Window& window, int dim, const tensor::ConstView& in, const tensor::View& out);

/// In place.
void window_all_reduce(Window& window, Reduction reduction, const tensor::View& data);

void window_all_to_all(Window& window, int split_dim, int concat_dim, const tensor::ConstView& in,
                       const tensor::View& out);

/// Rows as in Transport::all_to_all_rows; the members need not have the same number of them.
void window_all_to_all_rows(Window& window, const std::byte* send, std::span<const std::int64_t> send_rows,
                            std::byte* received, std::span<const std::int64_t> receive_rows, std::int64_t row_bytes);

/// `gives`: whether another member takes this one's block. source < 0: takes nothing.
void window_permute(Window& window, std::int64_t source, bool gives, const std::byte* in, std::byte* out,
                    std::int64_t bytes);

}  // namespace shardplan::comm
