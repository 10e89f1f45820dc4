#pragma once
// What standard error can show: colours, a line that changes, and how wide it is.

#include <cstddef>
#include <string>
#include <string_view>

namespace char_transformer {

/// Whether a line can be drawn over another there: it is a terminal, and TERM does not say that it
/// cannot.
bool can_redraw();

/// The columns of the terminal that a stream goes to; 80 where nobody knows.
std::size_t terminal_width(int stream = 2);

enum class Style { plain, bold, dim, green, red };

/// A text in a style, where there are styles: on terminals, or everywhere with CLICOLOR_FORCE, and
/// nowhere with NO_COLOR (https://bixense.com/clicolors, https://no-color.org).
std::string styled(Style style, std::string_view text);

/// The columns that a text takes at most, if it is printable().
std::size_t columns(std::string_view text);

/// Its lines, broken between words where they are longer than that.
std::string wrapped(std::string_view text, std::size_t most);

/// As many of its first characters as fit, with "..." if some do not.
std::string cut_to_columns(std::string_view text, std::size_t most);

}  // namespace char_transformer
